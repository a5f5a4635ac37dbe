"""A moment of each target of `make fuzz`: whatever is read, nothing is raised but what is ours, and in time."""

from __future__ import annotations

import pytest

from tests.fuzz.run import TARGETS
from tests.fuzz.target import Hang, Target, attack


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_hostile_input_is_read_or_refused(target: Target) -> None:
    assert attack(target, 40, 20261116) == 40


def test_a_reader_that_raises_something_else_is_a_fault() -> None:
    def read(_value: object) -> None:
        raise KeyError("not ours")

    with pytest.raises(KeyError):
        attack(Target("bad", TARGETS[0].inputs, read), 5, 1)
    assert not issubclass(Hang, Exception)
