"""Argo's settings: table by table, by variable, and nothing that nobody reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.errors import ConfigError
from interlock_argo.app import build_policy
from interlock_argo.settings import load_settings


def test_the_defaults_are_those_of_the_earlier_system() -> None:
    security = load_settings(environment={}).security
    assert (security.web_search_min_query_length, security.web_search_max_query_length) == (2, 500)
    assert (security.web_search_max_results, security.memory_write_max_content_size) == (20, 50_000)
    assert security.retrieve_context_max_chunk_id_length == 200
    assert "argo_notes_journal" in security.memory_write_allowed_namespaces


def test_the_old_names_of_variables_count(tmp_path: Path) -> None:
    found = load_settings(environment={"ARGO_HOME": str(tmp_path), "ARGO_SECURITY_WEB_SEARCH_MAX_QUERY_LENGTH": "80"})
    assert build_policy(found)["limits"]["longest_query"] == 80


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[security]\nweb_search_max_querys = 4\n", "web_search_max_querys"),
        ("[llm]\ntemperature = 0.7\n", "nothing reads 'llm'"),
        ("[security]\nweb_search_min_query_length = 0\n", "at least 1"),
        ("[security]\ncontext_max_chunks = 51\n", "between 1 and 50"),
        ('[web]\nsearxng = "http://a"\nfolder = "."\n', "set one of them"),
        ("[security\n", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "argo.toml").write_text(text)
    with pytest.raises(ConfigError, match=said):
        load_settings()


def test_a_variable_that_nothing_reads_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="ARGO_LLM_TEMPERATURE"):
        load_settings(environment={"ARGO_HOME": str(tmp_path), "ARGO_LLM_TEMPERATURE": "1"})
