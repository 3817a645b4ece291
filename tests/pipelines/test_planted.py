"""Tokens in every place for personal data: with `hash` and `drop` none is in anything others read."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import duckdb
import pytest

from report.render import write_report
from tests.pipelines.planted import TOKEN, Planter, fill
from warehouse.masking import Masking, personal_key
from warehouse.models import ModelSettings
from warehouse.policies import PersonalData
from warehouse.publish import publish_copy, published_path
from warehouse.tables import TABLES

pytestmark = pytest.mark.slow

WAYS = ("keep", "hash", "drop")
Homes = dict[str, Path]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Planter]:
    folder = tmp_path_factory.mktemp("planted")
    return folder, fill(folder)


@pytest.fixture(scope="module")
def homes(filled: tuple[Path, Planter], tmp_path_factory: pytest.TempPathFactory) -> Homes:
    """Everything kept; and each other way after that, published twice: with predecessors."""
    made = {way: tmp_path_factory.mktemp("homes") / way for way in WAYS}
    made["keep"].mkdir()
    shutil.copy(filled[0] / "warehouse.duckdb", made["keep"])
    (made["keep"] / "models").mkdir()
    (made["keep"] / "models" / "people.sql").write_text(
        "select c, v.*, l.url from source.contacts as c, source.timeline_visits as v, source.campaign_links as l"
    )
    publish_all(made["keep"], Masking(PersonalData.KEEP))
    for way in ("hash", "drop"):
        shutil.copytree(made["keep"], made[way], symlinks=True)
        for _ in range(2):
            publish_all(made[way], Masking(PersonalData(way), personal_key(made[way])))
    return made


def publish_all(home: Path, masking: Masking) -> None:
    publish_copy(home, masking)
    write_report(home)


@pytest.fixture(scope="module")
def plant(filled: tuple[Path, Planter]) -> Planter:
    return filled[1]


def shown(home: Path) -> Iterator[tuple[str, str]]:
    """(where, what) of every column of every table and its name, and the report."""
    with duckdb.connect(str(published_path(home)), read_only=True) as connection:
        tables = connection.execute(
            "select schema_name, table_name, column_name from duckdb_columns() where not internal"
        ).fetchall()
        for schema, table, column in tables:
            rows = connection.execute(
                f'select "{column}"::varchar from "{schema}"."{table}" where "{column}" is not null'
            ).fetchall()
            yield f"{schema}.{table}.{column}", "\n".join([column, *(row for (row,) in rows)])
    yield "report", (home / "report" / "index.html").read_text(encoding="utf-8")


def hits(plant: Planter, where: str, text: str) -> list[tuple[str, str]]:
    """(place, where) of each token of which any part is in the text, in any case, encoded or not.

    What only looks like one was not planted: ten digits in a row of a hash do, once in some nights."""
    once = unquote(text)
    found = {match for one in (text, once, unquote(once)) for match in TOKEN.findall(one.lower())}
    return [(plant.places[token], where) for token in sorted(found & plant.places.keys())]


def test_every_token_is_found_where_all_is_kept(homes: Homes, plant: Planter) -> None:
    found = {place for where, text in shown(homes["keep"]) for place, _ in hits(plant, where, text)}
    assert sorted(set(plant.places.values()) - found) == []
    assert len(plant.places) > 250
    print(
        f"planted {len(plant.places)} tokens in {len(set(plant.places.values()))} places"
    )  # `pytest -s` shows it


@pytest.mark.parametrize("way", ["hash", "drop"])
def test_none_is_found_otherwise_in_any_column_or_report(homes: Homes, plant: Planter, way: str) -> None:
    columns = list(shown(homes[way]))
    assert len(columns) > 500
    assert {"custom.people.c", "custom.people.url"} <= {where for where, _ in columns}
    assert [hit for where, text in columns for hit in hits(plant, where, text)] == []


@pytest.mark.parametrize("way", ["hash", "drop"])
def test_none_is_found_in_the_bytes_of_any_file(homes: Homes, plant: Planter, way: str) -> None:
    home = homes[way]
    files = [published_path(home), home / "report" / "index.html"]
    found = [
        (place, str(path))
        for path in files
        for place, _ in hits(plant, "", path.read_bytes().decode("latin-1"))
    ]
    assert found == []


@pytest.mark.parametrize("way", ["hash", "drop"])
def test_what_is_released_against_its_lineage_has_values_and_no_token(
    homes: Homes, plant: Planter, way: str
) -> None:
    models = ModelSettings().list_nodes()
    released = [
        f"{node.relation}.{column}"
        for node in models
        for column, is_personal in node.declared.items()
        if not is_personal
    ]
    assert released
    with duckdb.connect(str(published_path(homes[way])), read_only=True) as connection:
        for column in released:
            table, _, name = column.rpartition(".")
            texts = [
                text
                for (text,) in connection.execute(
                    f"select {name}::varchar from {table} where {name} is not null"
                ).fetchall()
            ]
            assert texts, f"{column} is declared not to be personal: plant something that fills it"
            assert hits(plant, column, "\n".join(texts)) == []


@pytest.mark.parametrize("way", ["hash", "drop"])
def test_keys_without_links_stay_unique_and_people_join_as_they_did(homes: Homes, way: str) -> None:
    def ask(which: str, sql: str) -> list[tuple[int, ...]]:
        with duckdb.connect(str(published_path(homes[which])), read_only=True) as connection:
            return connection.execute(sql).fetchall()

    for table in TABLES.values():
        keys = [column for column in table.columns if column.name in table.key]
        lost = [column for column in keys if column.is_link or (column.is_personal and way == "drop")]
        if not lost:
            key = ", ".join(["account", *(f'"{name}"' for name in table.key)])
            assert ask(way, f"select count(*) - count(distinct ({key})) from {table.qualified}") == [(0,)], (
                table.name
            )
    joined = ["source.timeline_visits join marts.contact_campaign using (account, contact_id)"]
    if way == "hash":
        joined.append("source.contacts c join marts.contact_engagement e on e.email = c.email_normalized")
    for pair in joined:
        count = f"select count(*) from {pair}"
        assert ask(way, count) == ask("keep", count) != [(0,)]
    total = (
        "select count(*), sum(address_count), sum(sent_count) from marts.deliverability_by_domain where "
        "address_count > 0"
    )
    assert ask(way, total) == ask("keep", total) != [(0,)]
    assert ask(way, "select count(url), count(*) > 0 from source.campaign_links") == [(0, True)]
