"""The commands that are attacked, and their homes. Everything here runs in forked processes (`stage`)."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from marketing_sync import cli
from tests.attack.stage import Action, Service, copy, run
from warehouse.errors import WarehouseError

_PEOPLE = (
    "select distinct on (email) contact_id, email, list_id from source.contacts where "
    "status = 'active' "
    "order by email limit 6"
)
TAGS = f"select email, 'vip' as tag from ({_PEOPLE})"
ACTIVITIES = (
    "select contact_id, 'Visit of ' || email as description, '2026-01-05 12:00:00' as datetime "
    f"from ({_PEOPLE})"
)
CONTACTS = (
    f"select email, list_id, 'unsubscribed' as status from ({_PEOPLE}) union all "
    "select 'new' || i || '@example.com', (select min(list_id) from source.lists), 'active' from "
    "range(3) t(i)"
)

#: A listing, one in pages, what is asked about each contact, days of a range, and what stays for good.
A_TABLE_OF_EACH_KIND = ("lists", "contacts", "timelines", "direct_reviews", "social_posts")


@dataclass(frozen=True)
class Victim:
    """`home`: which of `HOMES` it finds. `is_publishing`: it writes what analysts read."""

    name: str
    home: str
    action: Action
    is_publishing: bool = False


def command(*words: str) -> Action:
    return lambda: cli.main(words)


def _build_models() -> int:
    """As a run of its own, in which nothing is read or published."""
    from warehouse.models import build_models

    try:
        return int(
            bool(build_models(Path(os.environ["MARKETING_HOME"]) / "warehouse.duckdb").failure_summary)
        )
    except (WarehouseError, OSError) as problem:  # which the command line turns into a sentence
        print(problem)
        return 1


def _push(kind: str, sql: str) -> Action:
    return command("push", kind, "--sql", sql, "--apply")


VICTIMS = (
    Victim("push activities", "read", _push("activities", ACTIVITIES)),
    Victim("push tags", "read", _push("tags", TAGS)),
    Victim("push contacts", "read", _push("contacts", CONTACTS)),
    Victim("sync, first night", "new", command("sync", "--reads-only")),
    Victim("sync, next night", "next", command("sync", "--reads-only")),
    Victim("sync of some tables", "next", command("sync", "--reads-only", "--only", *A_TABLE_OF_EACH_KIND)),
    Victim("publish", "whole", command("publish"), is_publishing=True),
    Victim("publish --to", "whole", command("publish", "--to", "uploaded"), is_publishing=True),
    Victim("report", "whole", command("report")),
    Victim("rebuild", "whole", command("rebuild")),
    Victim("models", "read", _build_models),
    Victim("sync with models", "read", command("sync"), is_publishing=True),
)


def prepare(name: str, folder: Path, service: Service) -> Path:
    """The folder of one of `HOMES`, made with those that it comes from when it is not there."""
    target = folder / name
    if target.exists():
        return target
    before, make = HOMES[name]
    half = folder / f".{name}"
    copy(prepare(before, folder, service) if before else folder / "nothing", half)
    (half / "state").touch()
    make(half, service)
    half.rename(target)
    return target


def _done(action: Action, *, days: int = 0) -> Callable[[Path, Service], None]:
    def make(folder: Path, service: Service) -> None:
        with service.running(folder / "state") as sandbox:
            ended = run(folder, sandbox.url, action)
            if days:
                sandbox.control("advance", days=days)
        assert ended.code == 0, ended.text

    return make


def _begin(folder: Path, service: Service) -> None:
    with service.running(folder / "state"):
        pass


#: Name → the home that it comes from, and what is done to that.
HOMES: dict[str, tuple[str, Callable[[Path, Service], None]]] = {
    "new": ("", _begin),
    "read": ("new", _done(command("sync", "--reads-only"))),
    "whole": ("read", _done(command("sync"))),
    "next": ("whole", _done(command("report"), days=1)),
}
