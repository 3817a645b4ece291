"""In every dialect of the sandbox, two nights bring the same as in the specified one."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from assets.sources import SOURCE_ASSETS
from home.folder import prepare_home
from home.settings import Settings
from marketing_api.client import Connection, Secret
from pipelines.reading import open_reader
from tests.dialects.server import serve
from tests.dialects.switches import AS_OBSERVED, SWITCHES
from tests.fixtures import STANDING
from tests.pipelines.sandboxes import KEY, Sandbox
from tests.pipelines.tables import query

pytestmark = pytest.mark.attack

#: What a switch is meant to change: columns that hold what came as it came, or what the service shows less
#: of.
MEANT: dict[str, tuple[str, ...]] = {
    "contact-fields": ("contacts.custom_fields",),
    "show-timezone": ("business.timezone",),
    "channels": ("social_profiles.",),
    "email-field": ("contacts.custom_fields", "list_fields."),
    "campaign-groups": (
        "campaigns.name",
        "campaigns.sent_at",
        "campaigns.delivered_count",
        "campaigns.failed_count",
    ),
    "business-names": ("business.service_name", "business.extra"),
    "coupon-missing": ("coupons.",),
    "timeline-cut": ("timeline_",),
    "series-cut": ("feedback_views.", "review_stats.", "social_media_stats."),
}
#: Of switches that take a number.
_NUMBERS = {
    "page-cap": "7",
    "timeline-cut": "3",
    "series-cut": "5",
    "sync-delay": "1",
    "activity-delay": "1",
}


@dataclass
class Nights:
    columns: dict[str, list[str]]  # by TABLE.COLUMN, sorted
    refused: set[str]  # operations
    lines: list[str]  # of the second night


def dialects() -> list[tuple[str, dict[str, str]]]:
    single = [
        (name, value)
        for name, switch in SWITCHES.items()
        for value in switch.choices[1:] or [_NUMBERS.get(name, "1")]
    ]
    return [
        ("specified", {}),
        ("as observed", dict(AS_OBSERVED)),
        *((f"{name} {value}", {name: value}) for name, value in single),
    ]


def live(switches: dict[str, str], home: Path) -> Nights:
    prepare_home(home)
    lines = list[str]()
    with serve(replace(STANDING, contacts=40, switches=switches)) as url:
        settings = Settings(home, (Connection("main", url, Secret(KEY)),))
        for night in ("first", "second"):
            with open_reader(settings, list(SOURCE_ASSETS.values())) as reader:
                reader.begin_reading()
                reader.finish_reading()
                reader.note_run(night, "nightly_sync")
                lines = [line for problems in reader.list_missing_reasons().values() for line in problems]
                lines += [line for line in reader.list_notices() if "clock shows" not in line]
        refused = {
            entry["operation"] for entry in Sandbox(url).asked() if entry["outcome"] not in ("ok", "limited")
        }
    return Nights(dict(columns(home)), refused, lines)


def columns(home: Path) -> Iterator[tuple[str, list[str]]]:
    for table, column in query(
        home,
        "select table_name, column_name from duckdb_columns() where schema_name = 'source' and not internal",
    ):
        if not column.startswith("_"):
            yield (
                f"{table}.{column}",
                sorted(str(value) for (value,) in query(home, f'select "{column}" from source.{table}')),
            )


@pytest.fixture(scope="module")
def specified(tmp_path_factory: pytest.TempPathFactory) -> Nights:
    return live({}, tmp_path_factory.mktemp("specified") / "home")


@pytest.mark.parametrize(
    ("name", "switches"), dialects(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_two_nights_bring_what_the_specified_ones_bring(
    name: str, switches: dict[str, str], specified: Nights, tmp_path: Path
) -> None:
    nights = live(switches, tmp_path / "home")
    found = {column for column, values in nights.columns.items() if values != specified.columns[column]}
    meant = tuple(prefix for switch in switches for prefix in MEANT.get(switch, ()))
    assert {column for column in found if not column.startswith(meant)} == set(), "differ"
    position = switches.get("coupon-missing")
    assert nights.refused == ({"emailmarketing/getcoupon"} if position else set())
    is_incomplete = position == "all" or "series-cut" in switches
    assert bool(nights.lines) == is_incomplete, nights.lines
