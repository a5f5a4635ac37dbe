"""What is a text in stores, headers and the ledger, and a value everywhere else: written and read back without loss."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_catalog.document_keys import DocumentKey, DocumentKind, kind_of
from interlock_catalog.evidence import Evidence
from interlock_catalog.fencing_header import read_fencing_tokens, write_fencing_tokens
from interlock_catalog.runner.work_items import ORPHANS, SEARCHES, RunTurn, WorkItem, WorkKind

words = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
slugs = st.from_regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,8}){0,3}", fullmatch=True)
printable = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=40)


@given(
    words, st.text(st.characters(exclude_characters="@")), st.text(st.characters(exclude_characters="@"), max_size=9)
)
def test_evidence_is_read_back(source: str, detail: str, judge: str) -> None:
    evidence = Evidence(source, detail, judge)
    assert Evidence.parse(evidence.text) == evidence


@given(st.text(alphabet=":@~/ab", max_size=12))
def test_evidence_that_others_wrote_keeps_its_text(text: str) -> None:
    assert Evidence.parse(text).text == text


@given(st.sampled_from(DocumentKind), st.text())
def test_a_key_is_read_back(kind: DocumentKind, name: str) -> None:
    key = DocumentKey(kind, name)
    assert DocumentKey.parse(key.text) == key
    assert key.text.startswith(kind.prefix)


def test_what_is_no_key_is_said() -> None:
    assert kind_of("recipe:soup") is kind_of("exercise") is None
    with pytest.raises(ValueError, match="KIND:NAME"):
        DocumentKey.parse("recipe:soup")


@given(slugs, st.one_of(slugs.map(WorkItem.of_family), st.sampled_from([ORPHANS, SEARCHES])))
def test_a_turn_of_a_run_is_read_back(run: str, work: WorkItem) -> None:
    assert WorkItem.parse(work.text) == work
    assert RunTurn.parse(RunTurn(run, work).text) == RunTurn(run, work)


def test_a_family_that_is_called_as_other_work_is_a_family() -> None:
    assert WorkItem.parse("orphans") == WorkItem(WorkKind.FAMILY, "orphans")
    assert {WorkItem(kind).text for kind in WorkKind if kind is not WorkKind.FAMILY}.isdisjoint(WorkKind)
    assert RunTurn.parse("a-turn-of-a-person") is None


@given(st.dictionaries(printable, st.integers(min_value=0, max_value=10**18 - 1), max_size=5))
def test_fencing_tokens_are_read_back(tokens: dict[str, int]) -> None:
    header = write_fencing_tokens(tokens)
    assert header.isascii()
    assert read_fencing_tokens(header) == tokens


@pytest.mark.parametrize("header", ["a", "=1", "a=x", "a=1,a=2", "a=1234567890123456789", f"{'k' * 201}=1", "a=²"])
def test_a_header_that_is_no_list_of_tokens_is_refused(header: str) -> None:
    with pytest.raises(ValueError, match=r"key|token"):
        read_fencing_tokens(header)
