"""What docs/versions.md calls public and the last release had is still there, or CHANGELOG.md says under
"Removed" that it went. Fields of JSON output: tests/marketing_sync/test_json_output.py."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import yaml

from home import exits
from home.settings import VARIABLES, Settings
from marketing_sync import Client, errors, operations
from warehouse.dbt_project import PROJECT
from warehouse.tables import ALL_TABLES, TABLES_OF_COPY

ROOT = Path(__file__).parents[1]
#: Names of the last release, one a line, with a column's type; `make fixture` writes it when there is one.
RELEASED = Path(__file__).with_name("released.txt")


def options(group: click.Group, called: str) -> Iterator[str]:
    """Each command as it is typed, alone and with each of its options."""
    for name in group.list_commands(click.Context(group)):
        command = group.resolve_command(click.Context(group), [name])[1]
        assert command is not None
        yield f"{called} {name}"
        for param in command.params:
            longest = max(param.opts, key=len)
            yield from [f"{called} {name} {longest}"] if longest.startswith("-") else []
        if isinstance(command, click.Group):
            yield from options(command, f"{called} {name}")


def columns() -> Iterator[str]:
    for schema in ("marts", "history"):
        for path in (PROJECT / "models" / schema).rglob("*.yml"):
            for model in yaml.safe_load(path.read_text(encoding="utf-8"))["models"]:
                shown = (each for each in model["columns"] if each["name"][0] != "_")
                yield from (
                    f"{schema}.{model['name']}.{each['name']}: {each.get('data_type', 'any type')}"
                    for each in shown
                )
    for table in (*ALL_TABLES, *TABLES_OF_COPY):
        if not getattr(table, "is_internal", False):
            kept = (column for column in table.columns if not column.is_internal)
            yield from (f"{table.qualified}.{each.name}: {each.sql_type.lower()}" for each in kept)


def in_dagster() -> Iterator[str]:
    from pipelines.definitions import build_definitions

    location = build_definitions(Settings(Path("home"))).get_repository_def()
    yield from (f"job {name}" for name in location.job_names if not name.startswith("__"))
    yield from (f"schedule {each.name}" for each in location.schedule_defs)
    yield from (f"sensor {each.name}" for each in location.sensor_defs)
    keys = (key.to_user_string() for key in location.asset_graph.get_all_asset_keys())
    yield from (f"asset {key}" for key in keys if "/int_" not in key)  # steps on the way to marts


def in_python() -> Iterator[str]:
    yield from (f"marketing_sync.Client.{name}" for name in dir(Client) if name[0] != "_")
    raised = (
        each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)
    )
    yield from (f"marketing_sync.errors.{each.__name__}" for each in raised)
    yield from (f"operation {name}" for name in operations.ALL)
    yield from (f"exit code {name}={code}" for name, code in vars(exits).items() if isinstance(code, int))


def public() -> set[str]:
    from marketing_sync.cli import PROGRAM

    return {*options(PROGRAM, "marketing-sync"), *columns(), *in_dagster(), *in_python(), *VARIABLES}


def test_what_was_released_goes_only_when_the_changelog_says_so() -> None:
    removed = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("### Removed")[2]
    gone = set(RELEASED.read_text(encoding="utf-8").splitlines()) - public()
    names = {line: line.partition(":")[0] for line in gone}
    unsaid = {
        line
        for line, name in names.items()
        if f"`{name}`" not in removed and f"`{name.rpartition('.')[0]}`" not in removed
    }
    assert not unsaid, "keep it beside the new name, or name it in CHANGELOG.md under Removed"


if __name__ == "__main__":
    RELEASED.write_text("".join(f"{line}\n" for line in sorted(public())), encoding="utf-8")
    sys.exit(None)
