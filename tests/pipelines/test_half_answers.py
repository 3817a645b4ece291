"""A service that answers half: no row goes, it is said, and the next good answer heals everything."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from marketing_api.sandbox.app import Rule
from marketing_api.sandbox.rules import CheckedCall
from tests.dialects.server import serve
from tests.fixtures import STANDING, Command
from tests.pipelines.sandboxes import Sandbox, put_in

TABLES = ("direct_reviews", "review_stats", "social_media_stats", "campaign_clickers", "goals")
ONLY = (
    "sync",
    "--only",
    "direct_reviews",
    "reputation_stats",
    "campaigns",
    "campaign_stats",
    "webhooks",
    "goals",
)
#: What becomes of the payload of an operation.
Halving = dict[str, Callable[[Any], Any]]


@pytest.fixture
def halving(monkeypatch: pytest.MonkeyPatch) -> Halving:
    """Of the sandboxes of this process."""
    made: Halving = {}

    def halved(call: CheckedCall, rule: Rule) -> Any:
        return made.get(call.operation.name, lambda whole: whole)(rule(call))

    put_in(monkeypatch, halved)
    return made


@pytest.fixture
def service(halving: Halving) -> Iterator[Sandbox]:
    with serve(STANDING) as url:
        yield Sandbox(url)


def live(home: Path) -> dict[str, int]:
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        counts = {
            name: connection.execute(
                f"select count(*) from source.{name} where _deleted_at is null"
            ).fetchone()
            for name in TABLES
        }
    return {name: count[0] for name, count in counts.items() if count is not None}


def cut(payload: dict[str, Any]) -> dict[str, Any]:
    """Six of ten entries, while the count stays."""
    return payload | {"items": payload["items"][: len(payload["items"]) * 6 // 10]}


def a_day_passes(home: Path) -> None:
    """The statistics of campaigns are asked for once a day."""
    with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
        connection.execute(
            "update source.campaign_stats set observed_on = observed_on - 2, _changed_at = _changed_at - "
            "interval 2 day"
        )


@pytest.mark.usefixtures("unrecorded")
@pytest.mark.slow
def test_half_answers_take_no_row_and_are_said_until_a_whole_one_comes(
    command: Command, service: Sandbox, halving: Halving, home: Path
) -> None:
    assert command(*ONLY, sandbox=service).code == 0
    before = live(home)
    assert min(before.values()) > 1
    a_day_passes(home)
    halving |= {
        "reputation/direct": cut,
        "goal/lists": cut,
        "reputation/stats": lambda _: [],
        "emailmarketing/stats": lambda payload: payload | {"clicks": None},
    }
    half = command(*ONLY, sandbox=service)
    assert half.code == 1
    assert live(home) == before
    assert "goals: goal/lists: the service counts 6 entries and lists 3" in half.out
    assert "reputation/stats, " in half.out
    assert "campaign_clickers: " in half.out
    halving.clear()
    a_day_passes(home)
    whole = command(*ONLY, sandbox=service)
    assert whole.code == 0, whole.text
    assert live(home) == before
