"""The tests of the library."""

import pytest

# The contract of stores is part of the library: where it fails, pytest shows values as it does for tests.
pytest.register_assert_rewrite("interlock.testing.store_contract")
