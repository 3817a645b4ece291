"""docs/sending-back.md is true: what its commands leave behind is what the page says."""

import tomllib
from collections.abc import Callable

import pytest

from tests.pipelines.pages import ROOT, Told, blocks
from tests.pipelines.tables import query

NAME = "docs/sending-back.md"
PAGE = (ROOT / NAME).read_text(encoding="utf-8")


@pytest.mark.slow
def test_what_the_plan_counted_was_sent_and_contacts_were_read_back(told: Callable[[str], Told]) -> None:
    """That its commands run, and print what it shows, is tests/pipelines/test_docs.py's."""
    page = told(NAME)
    assert page.printed("sql")[0] == f"applied {page.printed('sh')[0].split()[0]}"
    assert query(
        page.home, "select distinct state from sync.writebacks where push_id = 2 and operation is not null"
    ) == [("verified",)]


def test_the_example_of_activations_is_what_the_program_reads() -> None:
    (example,) = [block.text for block in blocks(NAME) if block.language == "toml"]
    assert set(tomllib.loads(example)["activations"]) == {"regulars", "caterers"}


@pytest.mark.parametrize(
    "state", ["planned", "sending", "applied", "verified", "rejected", "unknown", "skipped"]
)
def test_every_state_is_explained(state: str) -> None:
    assert f"| `{state}` |" in PAGE
