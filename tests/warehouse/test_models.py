"""Building the models: what is kept and what is rebuilt, and messages. What the marts say: `marts/`."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from docs.models import QUIET
from tests import warm
from tests.depth import DEEP
from tests.pipelines.tables import differing
from tests.simulators.model_data import a_night_later
from tests.waiting import HANGS_S
from tests.warehouse.selected import selected
from warehouse import models
from warehouse.dbt_project import PROJECT
from warehouse.duckdb_errors import mask_error
from warehouse.errors import NoWarehouse, WarehouseLocked
from warehouse.models import ModelSettings, Status, build_models, table_sizes


def query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(path)) as connection:
        return connection.execute(sql).fetchall()


def tables(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of what the models made, in order."""
    relations = sorted(table_sizes(path))
    with duckdb.connect(str(path)) as connection:
        return {
            relation: connection.execute(f"from {relation} order by all").fetchall() for relation in relations
        }


#: A view: it ages between two queries.
_BY_THE_CLOCK = {"marts.data_freshness"}


# -- what is kept


@pytest.mark.slow
def test_a_night_that_keeps_what_it_can_gives_the_same_rows_as_one_that_makes_all_anew(path: Path) -> None:
    """Also when its first building was killed, which nobody is shown anything of."""
    a_night_later(path)
    other = path.with_name("other") / path.name
    other.parent.mkdir()
    shutil.copy(path, other)
    killed = warm.Command("tests.warehouse.killed_build", [str(path)], path.parent, os.environ)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    with duckdb.connect(str(path)) as connection:
        assert "did not finish" in models.publish_blockers(connection)[0]
    kept, anew = build_models(path), build_models(other, full=True)
    assert not kept.failure_summary + anew.failure_summary
    assert (kept.is_full, anew.is_full) == (False, True)
    ours, theirs = tables(path), tables(other)
    assert ours.keys() == theirs.keys()
    assert {name for name in ours if ours[name] != theirs[name]} <= _BY_THE_CLOCK
    assert len(ours["marts.contact_campaign"]) > 1000
    assert len(ours["marts.attribution"]) > 200


def test_a_night_writes_only_the_messages_of_contacts_that_changed(path: Path) -> None:
    query(path, "update staging.int_messages set automation = 'kept'")
    a_night_later(path)
    assert not build_models(path, select=selected("+contact_campaign")).failure_summary
    contacts, newest = (
        "select distinct contact_id from",
        "(select max(_changed_at) from source.timeline_events)",
    )
    messages = f"{contacts} staging.int_messages where automation is distinct from 'kept' order by 1"
    changed = f"{contacts} source.timeline_events where _changed_at = {newest} order by 1"
    assert query(path, messages) == query(path, changed) != []


def test_other_settings_make_everything_anew_but_history(path: Path) -> None:
    began = query(path, "select min(valid_from), count(*) from history.contacts")
    other = ModelSettings(attribution_hours=24)
    report = build_models(path, other, select=["int_accounts", "history_contacts"])
    assert report.is_full
    assert query(path, "select min(valid_from), count(*) from history.contacts") == began
    assert not build_models(path, select=["int_accounts"]).is_full


def test_a_campaign_that_is_known_later_than_its_messages_is_found(path: Path) -> None:
    later = "subject = 'Told later', _changed_at = _changed_at + interval 1 day"
    query(path, f"update source.campaigns set {later} where campaign_id = 7")
    copy = (
        "* replace (7777 as campaign_id, 'Subject 7' as subject) from source.campaigns where campaign_id = 8"
    )
    query(path, f"insert into source.campaigns by name select {copy}")
    assert not build_models(path, select=selected("+contact_campaign")).failure_summary
    sql = "select campaign_id, count(*) from marts.contact_campaign where subject = 'Subject 7' group by all"
    # the subject that a campaign once had still counts, and one campaign stands for each moment
    assert len(query(path, sql)) == 1


def _copies_of_campaigns(path: Path, created_at: str) -> None:
    """Every campaign once more under the same subject, with its links; ids above 10,000."""
    anew = "campaign_id + 10000 as campaign_id"
    for table, values in (("campaigns", f"{anew}, {created_at} as created_at"), ("campaign_links", anew)):
        query(path, f"insert into source.{table} by name select * replace ({values}) from source.{table}")


@pytest.mark.slow
def test_a_click_moves_with_its_message_to_another_campaign(path: Path) -> None:
    """To the newer one of its subject, once the older is known to have been sent before that was created."""
    a_night_later(path)
    clicks = "select contact_id, touched_at, campaign_id from marts.attribution where last_credit = 1"
    clicks += " and touched_at > timestamptz '2026-11-20 15:00+00'"
    matched = "select contact_id, clicked_at, campaign_id from marts.contact_campaign"
    for wanted in (239, 10239):
        assert not build_models(path, select=selected("+attribution")).failure_summary
        found = query(path, clicks)
        assert {campaign_id for *_, campaign_id in found} == {wanted}
        assert query(path, f"{clicks} except {matched}") == []
        if wanted == 239:
            _copies_of_campaigns(path, "timestamptz '2026-11-20 12:00+00'")


def test_a_message_that_two_campaigns_may_have_sent_is_credited_to_neither(path: Path) -> None:
    """Also when the second one becomes known after the message was matched."""
    counts = "select count(campaign_id), count(*) filter (where is_ambiguous), count(*)"
    counts += " from marts.contact_campaign where kind = 'standard'"
    ((matched, _, every),) = query(path, counts)
    assert matched > 0.9 * every
    _copies_of_campaigns(path, "created_at + interval 1 minute")
    assert not build_models(path, select=selected("+contact_campaign")).failure_summary
    assert query(path, counts) == [(0, every, every)]


def test_a_warehouse_that_older_models_built_is_made_anew_with_the_new_columns(path: Path) -> None:
    """As of what is kept by contact a column cannot be added in a night."""
    query(path, "alter table staging.int_messages drop column is_quick_open")
    query(path, "update sync.meta set value = 'of older models' where name = 'models'")
    report = build_models(path, select=selected("+contact_campaign"))
    assert not report.failure_summary
    assert report.is_full
    assert query(path, "select count(is_quick_open) > 0 from marts.contact_campaign") == [(True,)]


# -- history


def versions(path: Path) -> list[tuple[Any, ...]]:
    """Of list 1: its versions by age."""
    columns = "name, valid_from::date::varchar, valid_to::date::varchar, is_current, ended_by"
    where = "account = 'main' and list_id = 1 order by valid_from"
    return query(path, f"select {columns} from history.lists where {where}")


def change(path: Path, day: str, what: str) -> None:
    changes = f"{what}, _changed_at = '{day} 02:00+00'"
    query(path, f"update source.lists set {changes} where account = 'main' and list_id = 1")
    assert not build_models(path, select=["history_lists"]).failure_summary


def test_history_keeps_changes_deletions_and_returns(path: Path) -> None:
    change(path, "2026-12-01", "name = 'Second'")
    change(path, "2026-12-03", "_deleted_at = '2026-12-03 02:00+00'")
    change(path, "2026-12-05", "_deleted_at = null, name = 'Back'")
    expected = [
        ("List 1", "2026-11-19", "2026-12-01", False, "changed"),
        ("Second", "2026-12-01", "2026-12-03", False, "deleted"),
        ("Back", "2026-12-05", None, True, None),
    ]
    assert versions(path) == expected
    assert not build_models(path, select=["history_lists"]).failure_summary
    assert versions(path) == expected, "a night without changes adds nothing"
    change(path, "2026-12-04", "name = 'An older answer'")
    assert versions(path) == expected


def test_history_of_an_earlier_version_gains_the_new_columns(path: Path) -> None:
    query(path, "alter table history.lists drop column name")
    change(path, "2026-12-01", "name = 'Second'")
    assert versions(path) == [
        (None, "2026-11-19", "2026-12-01", False, "changed"),
        ("Second", "2026-12-01", None, True, None),
    ]


def test_history_has_what_was_deleted_before_it_began(path: Path) -> None:
    gone = "99 as list_id, timestamptz '2026-11-25 02:00+00' as _deleted_at"
    copy = f"* replace ({gone}) from source.lists where account = 'main' and list_id = 1"
    query(path, f"insert into source.lists by name select {copy}")
    columns = "valid_from::date::varchar, valid_to::date::varchar, is_current, ended_by"
    for _ in range(2):
        assert not build_models(path, select=["history_lists"]).failure_summary
        found = query(path, f"select {columns} from history.lists where list_id = 99")
        assert found == [("2026-11-19", "2026-11-25", False, "deleted")]


# -- what is said


def test_a_test_that_fails_is_named_with_its_model_and_the_rows_that_break_it(path: Path) -> None:
    query(path, "insert into history.lists by name from history.lists where account = 'main' and list_id = 1")
    report = build_models(path, select=["history_lists"])
    said = "test of history_lists: A version is identified by its row and its beginning, broken by 1 rows"
    assert said in report.failure_summary


def test_a_model_that_fails_is_named_without_what_it_choked_on(path: Path) -> None:
    query(path, "alter table source.coupons alter redeemed_on set data type varchar")
    query(path, "update source.coupons set redeemed_on = 'someone@private.example' where is_redeemed")
    report = build_models(path, select=selected("stg_coupons", "+attribution+"))
    assert "model attribution" in report.failure_summary
    assert "not built because of that: goal_conversions" in report.failure_summary
    assert "someone" not in report.failure_summary
    assert [outcome.name for outcome in report.with_status(Status.FAILED)] == ["attribution"]


def test_messages_are_shortened_to_what_is_no_data() -> None:
    said = "Conversion Error: Could not convert string 'a@b.example' to INT32 in a.b@c.example\nLINE"
    told = mask_error(duckdb.ConversionException(said))
    assert told == "Conversion Error: Could not convert string ••• to INT32 in •••"


def test_without_a_warehouse_it_is_said_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NoWarehouse, match="marketing-sync sync"):
        build_models(tmp_path / "warehouse.duckdb")
    assert list(tmp_path.iterdir()) == []


def _hold(path: str, is_open: Any, done: Any) -> None:
    with duckdb.connect(path):
        is_open.set()
        done.wait(HANGS_S)


@pytest.fixture
def held(path: Path) -> Iterator[Path]:
    """The file while another process has it."""
    context = multiprocessing.get_context("spawn")
    is_open, done = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(str(path), is_open, done))
    process.start()
    assert is_open.wait(HANGS_S)
    yield path
    done.set()
    process.join(HANGS_S)


def test_a_file_that_somebody_has_is_waited_for_and_named(held: Path) -> None:
    with pytest.raises(WarehouseLocked, match=r"in use by .* \(process \d+\)"):
        build_models(held, deadline_s=0.1)


def test_afterwards_the_file_is_free_and_the_project_as_it_was(path: Path) -> None:
    before = sorted(PROJECT.iterdir())
    assert not build_models(path, select=["int_accounts"]).failure_summary
    words = [sys.executable, "-c", f"import duckdb; duckdb.connect({str(path)!r})"]
    subprocess.run(words, check=True, timeout=HANGS_S)
    assert sorted(PROJECT.iterdir()) == before


def test_every_model_and_column_is_described_in_the_file(first_night: Path) -> None:
    """By COMMENTs, as persisted from the descriptions."""
    name, where = "schema_name || '.' || table_name", "schema_name in ('history', 'marts')"
    where += " and database_name = current_database() and coalesce(comment, '') = ''"
    columns = f"select {name} || '.' || column_name from duckdb_columns() where {where}"
    tables_too = f"select {name} from duckdb_tables() where {where}"
    assert query(first_night, f"{columns} union all {tables_too}") == []


@pytest.mark.slow
def test_calculations_with_judgement_hold_on_worked_examples(path: Path) -> None:
    """dbt's unit tests, beside the models: rates without a denominator, windows, tiers, missing nights."""
    assert len(_dbt(path, "test", "--select", "test_type:unit")) > 10


@pytest.mark.skipif(not DEEP, reason="takes 15 s")
def test_dbt_itself_builds_the_same(path: Path) -> None:
    """As somebody runs it who knows dbt."""
    a_night_later(path)
    other = path.with_name("other") / path.name
    other.parent.mkdir()
    shutil.copy(path, other)
    assert not build_models(path).failure_summary
    assert len(_dbt(other, "build")) > 180
    ours, theirs = tables(path), tables(other)
    assert differing(ours, theirs) <= _BY_THE_CLOCK
    for comments in ("duckdb_tables", "duckdb_views", "duckdb_columns"):
        names = "columns('^(schema|table|view|column)_name$|^data_type$|^comment$')"
        sql = f"select {names} from {comments}() where database_name = current_database() order by all"
        assert query(path, sql) == query(other, sql)


def _dbt(path: Path, *words: str) -> list[Any]:
    """What ran."""
    from dbt.cli.main import dbtRunner

    project = ("--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT))
    folder = str(path.with_name("dbt"))
    folders = (*project, "--target-path", folder, "--log-path", folder)
    with warnings.catch_warnings(action="ignore"), pytest.MonkeyPatch.context() as patched:
        patched.setenv("MARKETING_HOME", str(path.parent))
        results: Any = dbtRunner().invoke([*words, *QUIET, *folders]).result
    assert {str(result.status) for result in results} <= {"pass", "success", "no-op"}
    return list(results)


# -- what is not built again


def test_what_nothing_changed_for_is_not_built_and_what_changed_is(path: Path) -> None:
    """And a night is the same as one that builds everything."""
    assert {outcome.status for outcome in build_models(path).outcomes} == {Status.UNCHANGED}
    query(path, "update source.lists set name = 'Another', _changed_at = _changed_at + interval 1 hour")
    report = build_models(path)
    built = {outcome.node.relation for outcome in report.with_status(Status.OK) if not outcome.node.is_test}
    assert {"history.lists", "staging.stg_lists"} <= built
    assert not {"history.contacts", "marts.contact_campaign", "marts.campaign_performance"} & built


@pytest.mark.parametrize("seed", range(20 if DEEP else 1))
@pytest.mark.slow
def test_nights_that_build_what_changed_are_as_nights_that_build_everything(path: Path, seed: int) -> None:
    random = Random(seed)
    other = path.with_name("other") / path.name
    other.parent.mkdir()
    shutil.copy(path, other)
    for night in (1, 2):
        for statement in _changes(path, random, night):
            for file in (path, other):
                query(file, statement)
        kept, anew = build_models(path), build_models(other, full=True)
        assert (kept.failure_summary, kept.warnings) == (anew.failure_summary, anew.warnings)
        assert kept.with_status(Status.UNCHANGED)
        ours, theirs = tables(path), tables(other)
        assert {name for name in ours if ours[name] != theirs[name]} <= _BY_THE_CLOCK


def _changes(path: Path, random: Random, night: int) -> Iterator[str]:
    """What loads may do to a few tables, at random: rows change, go, come back, and are found again."""
    moment = f"timestamptz '2026-11-20 02:00+00' + interval {night} day"

    def tables_with(column: str) -> list[str]:
        where = f"schema_name = 'source' and column_name = '{column}'"
        found = query(path, f"select table_name from duckdb_columns() where {where} order by 1")
        return [name for (name,) in found]

    changing, leaving = tables_with("_changed_at"), tables_with("_deleted_at")
    for table in random.sample(changing, 3):
        yield f"update source.{table} set _changed_at = {moment} where rowid % {random.choice((2, 90))} = 0"
    for table in random.sample(leaving, 2):
        going = f"case when _deleted_at is null then {moment} end"
        changes, share = f"_deleted_at = {going}, _changed_at = {moment}", random.choice((5, 90))
        yield f"update source.{table} set {changes} where rowid % {share} = 1"
    if random.random() < 0.5:
        yield f"update sync.coverage set as_of = as_of + interval {random.randint(1, 30)} hour"
        later = "timeline_asked_at = timeline_asked_at + interval 1 day"
        yield f"update sync.contact_coverage set {later} where rowid % 7 = 0"


@pytest.mark.slow
def test_what_somebody_changed_or_removed_in_the_file_is_built_again(path: Path) -> None:
    before = tables(path)
    query(path, "delete from marts.coupon_funnel")
    query(path, "drop view staging.stg_goals")
    query(path, "update marts.campaign_performance set subject = 'Mine'")
    made = build_models(path).with_status(Status.OK)
    built = {outcome.node.relation for outcome in made if not outcome.node.is_test}
    assert {"marts.coupon_funnel", "staging.stg_goals", "marts.campaign_performance"} <= built
    after = tables(path)
    assert {name for name in before if before[name] != after[name]} <= _BY_THE_CLOCK


@pytest.mark.slow
def test_what_warns_or_fails_says_so_every_night(path: Path) -> None:
    first_sent = "(select min(contact_id) from marts.contact_campaign)"
    query(path, f"delete from source.contacts where contact_id = {first_sent}")
    first, second = build_models(path), build_models(path)
    assert first.warnings == second.warnings != []
    query(path, "insert into history.lists by name from history.lists where account = 'main' and list_id = 1")
    first, second = build_models(path), build_models(path)
    assert first.failure_summary == second.failure_summary != ""
