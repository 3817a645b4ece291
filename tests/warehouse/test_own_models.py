"""Models of the user's: built behind ours, published under the same rules, and never in the way."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from shutil import copyfile

import duckdb
import pytest

from marketing_api.redaction import Secret
from warehouse.errors import WarehouseError
from warehouse.masking import Masking, own_columns
from warehouse.models import BuildReport, Status, build, publish_blockers
from warehouse.own_models import (
    PROBLEM,
    DbtMissing,
    NoSuchModel,
    OwnSettings,
    build_own,
    new_model,
    what_is_missing,
)
from warehouse.policies import PersonalData
from warehouse.publish import earlier, publish, published_path
from warehouse.schema import fact

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 14), reason="dbt 1.11 knows no Python after 3.13")


@pytest.fixture
def home(first_night: Path, tmp_path: Path) -> Path:
    """A home whose marts are built."""
    copyfile(first_night, tmp_path / "warehouse.duckdb")
    return tmp_path


def made(
    home: Path, *, select: tuple[str, ...] = (), full: bool = False, seconds: float = 600, **files: str
) -> BuildReport:
    """What comes of building with these models: name → SQL, name_yml → description; `folder/name` for what is
    no model."""
    folder = home / "models"
    for name, text in files.items():
        path = folder / (
            name if "." in name else f"{name[:-4]}.yml" if name.endswith("_yml") else f"{name}.sql"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return build_own(home / "warehouse.duckdb", OwnSettings(folder, seconds), select=select, full=full)


def asked(file: Path, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(file), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def published(home: Path, personal_data: PersonalData = PersonalData.KEEP) -> Path:
    publish(home, Masking(personal_data, Secret("k" * 20), 1), check=publish_blockers)
    return published_path(home)


@pytest.mark.slow
def test_a_new_model_runs_as_it_is_and_is_published_with_its_comments(home: Path) -> None:
    new_model(home / "models", "clickers_by_list")
    report = made(home)
    assert report.problems == report.warnings == []
    assert {outcome.status for outcome in report.outcomes} == {Status.OK}
    assert len(report.outcomes) == 3
    file = published(home)
    assert asked(
        file, "select count(*) > 0 and bool_and(clicker_count <= member_count) from custom.clickers_by_list"
    ) == [(True,)]
    comments = "select comment is not null from duckdb_columns() where schema_name = 'custom'"
    assert set(asked(file, comments)) == {(True,)}


@pytest.mark.slow
def test_what_is_personal_follows_from_the_sql(home: Path) -> None:
    made(
        home,
        people="select account, upper(email) as shouted, engagement_tier, 'fixed' as word from {{ "
        "ref('contact_engagement') }}",
        of_people="select account, left(shouted, 3) as beginning from {{ ref('people') }}",
        of_staging="select account, email, status from {{ ref('stg_contacts') }}",
    )
    file = published(home, PersonalData.DROP)
    assert asked(
        file, "select count(shouted), count(engagement_tier) > 0, count(word) > 0 from custom.people"
    ) == [(0, True, True)]
    assert asked(file, "select count(beginning) from custom.of_people") == [(0,)]
    assert asked(file, "select count(email), count(status) > 0 from custom.of_staging") == [(0, True)]


@pytest.mark.attack
def test_a_column_that_failed_to_be_made_anew_stays_as_personal_as_it_was(home: Path) -> None:
    made(home, people="select account, email as name from {{ ref('contact_engagement') }}")
    report = made(
        home, people="select account, 'nobody' as name, no_such_column from {{ ref('contact_engagement') }}"
    )
    assert any("people" in problem for problem in report.problems)
    assert asked(
        published(home, PersonalData.DROP), "select count(name), count(*) > 0 from custom.people"
    ) == [(0, True)]


@pytest.mark.slow
def test_what_its_sql_does_not_show_counts_as_personal(home: Path) -> None:
    """Hooks, and queries while it is compiled, can bring anything into a table; so can rows of earlier
    SQL."""
    anybody = "select max(email) from {{ ref('contact_engagement') }}"
    files = {
        "hooked": "{{ config(post_hook=\"update {{ this }} set word = '(nobody)'\") }} select 'x' as word",
        "compiled": f"select '{{{{ run_query(\"{anybody}\").columns[0].values()[0] if execute }}}}' as word",
        "grown": f"{{{{ config(materialized='incremental') }}}} select ({anybody}) as word",
    }
    files["compiled"] = files["compiled"].replace(
        "{{ ref('contact_engagement') }}", "marts.contact_engagement"
    )
    assert made(home, **files).problems == []
    assert (
        made(
            home, grown="{{ config(materialized='incremental') }} select 'x' as word", select=("grown",)
        ).problems
        == []
    )
    counts = "select count(word), count(*) > 0 from custom.{}"
    file = published(home, PersonalData.DROP)
    assert {name: asked(file, counts.format(name)) for name in files} == {name: [(0, True)] for name in files}


# -- what is wrong costs itself


@pytest.mark.slow
def test_a_file_that_dbt_cannot_read_costs_itself_and_what_needs_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARKETING_API_KEY", "a-key-of-nobody")
    made(home, kept="{{ config(materialized='incremental') }} select 1 as x")
    wrong = {
        "no_such_ref": "select * from {{ ref('nothing_of_that_name') }}",
        "broken": "select * from {{ ref('contact_engagement' }}",
        "secret": "select '{{ env_var('MARKETING_API_KEY') }}' as x",
        "behind": "select * from {{ ref('secret') }}",
        "strict": "{{ config(materialized='incremental', contract={'enforced': true}) }} select 1 as x",
        "kept_yml": "models: [{ name: kept, columns: [",
        "macros/overriding.sql": "{% macro duckdb__create_table_as(a, b, c, d) %}select 1{% endmacro %}",
    }
    report = made(
        home,
        fine="select {{ doubled(2) }} as x",
        **{"macros/mine.sql": "{% macro doubled(n) %}{{ n * 2 }}{% endmacro %}"},
        **wrong,
    )
    assert [node.name for node in report.made] == ["fine"]
    assert len(report.left_out) == len(wrong)
    for name in (
        "no_such_ref.sql",
        "broken.sql",
        "secret.sql",
        "behind.sql",
        "strict.sql",
        "kept.yml",
        "macros/overriding.sql",
    ):
        assert [
            line for line in report.left_out if line.startswith(f"{home / 'models' / name} is left out")
        ], (name, report.left_out)
    assert any("Env var required but not provided: 'MARKETING_API_KEY'" in line for line in report.left_out)
    assert "a-key-of-nobody" not in str(report)
    file = published(home)
    assert asked(file, "select x from custom.fine") == [(4,)]
    assert asked(file, "select count(*) from custom.kept") == [(1,)], (
        "what a broken description is about is not built without it"
    )


#: It takes time, and nothing else.
ENDLESS = (
    "select count(*) as n from range(100000) a, range(100000) b, range(100000) c where a.range + "
    "b.range <> c.range"
)

#: Name of the model → its SQL, and a part of what is said of it. {home}: where nothing may be read or
#: written.
_OUTSIDE = {
    "csv": ("select * from read_csv('/etc/passwd')", "file system operations are disabled"),
    "text": ("select * from read_text('/etc/passwd')", "file system operations are disabled"),
    "globbed": ("select * from glob('/etc/*')", "file system operations are disabled"),
    "named": ("select * from '{home}/warehouse.duckdb'", "file system operations are disabled"),
    "net": ("select * from 'https://example.com/x.csv'", "file system operations are disabled"),
    "secrets": ("select * from duckdb_secrets()", "file system operations are disabled"),
    "getenv": ("select getenv('MARKETING_API_KEY') as x", "does not exist"),
    "variable": ("select * from os", "does not exist"),
    "attached": (
        "{{{{ config(pre_hook=\"attach '{home}/out/x.duckdb' as x\") }}}} select 1 as x",
        "file system operations are disabled",
    ),
    "copied": (
        "{{{{ config(pre_hook=\"copy (select 1) to '{home}/out/x.csv'\") }}}} select 1 as x",
        "file system operations are disabled",
    ),
    "exported": ("{{{{ config(pre_hook=\"export database '{home}/out/x'\") }}}} select 1 as x", "disabled"),
    "installed": ('{{{{ config(pre_hook="install httpfs") }}}} select 1 as x', "disabled"),
    "loaded": ('{{{{ config(pre_hook="load httpfs") }}}} select 1 as x', "disabled"),
    "opened": (
        '{{{{ config(pre_hook="set enable_external_access = true") }}}} select 1 as x',
        "configuration has been locked",
    ),
    "unlocked": (
        '{{{{ config(pre_hook="reset lock_configuration") }}}} select 1 as x',
        "configuration has been locked",
    ),
    "roomy": (
        "{{{{ config(pre_hook=\"set memory_limit = '900GB'\") }}}} select 1 as x",
        "configuration has been locked",
    ),
    "pragmatic": (
        "{{{{ config(pre_hook=\"pragma temp_directory='{home}/out'\") }}}} select 1 as x",
        "configuration has been locked",
    ),
    "external_": (
        "{{{{ config(materialized='external', location='{home}/out/x.parquet') }}}} select 1 as x",
        "disabled",
    ),
    "plugged": ("{{{{ config(materialized='external', plugin='excel') }}}} select 1 as x", "disabled"),
    "compiled": (
        "select {{{{ run_query(\"from read_text('/etc/passwd')\") }}}} as x",
        "file system operations are disabled",
    ),
    "adapted": (
        "{{{{ adapter.execute(\"copy (select 1) to '{home}/out/x.csv'\") }}}} select 1 as x",
        "disabled",
    ),
    "twice": ("select 1 as x; copy (select 1) to '{home}/out/x.csv'", "syntax error"),
    "two.py": (
        "def model(dbt, session):\n    open('{home}/out/x', 'w')\n    return session.sql('select 1')\n",
        "Python are not run",
    ),
}


@pytest.mark.slow
def test_no_model_reaches_files_settings_or_the_network(home: Path) -> None:
    (home / "out").mkdir()
    report = made(
        home, fine="select 1 as x", **{name: sql.format(home=home) for name, (sql, _) in _OUTSIDE.items()}
    )
    said = {outcome.node.name: outcome.message for outcome in report.of(Status.FAILED)}
    assert {
        name
        for name, (_, part) in _OUTSIDE.items()
        if part not in said.get(name.partition(".")[0], "it was built")
    } == set(), said
    assert [node.name for node in report.made] == ["fine"]
    assert list((home / "out").iterdir()) == []
    tables = "select schema_name || '.' || table_name from duckdb_tables() where schema_name = 'custom'"
    assert asked(home / "warehouse.duckdb", tables) == [("custom.fine",)]


@pytest.mark.attack
def test_an_endless_model_and_one_that_takes_all_memory_cost_themselves(home: Path) -> None:
    """Also what they would have made of a table that is there."""
    made(home, endless="select 1 as n", hungry="select 1 as n")
    before = asked(home / "warehouse.duckdb", "select count(*) from marts.contact_engagement")
    report = made(
        home,
        seconds=10,
        endless=ENDLESS,
        behind="select * from {{ ref('endless') }}",
        hungry="select sum(n) as n from (select unnest(range(1000000000)) n)",
        drops="{{ config(post_hook='drop table marts.contact_engagement cascade') }} select 1 as n",
        zlast="select 1 as n",
    )
    assert {outcome.name for outcome in report.of(Status.FAILED)} == {"endless", "hungry"}
    assert "MARKETING_MODELS_SECONDS" in next(problem for problem in report.problems if "endless" in problem)
    assert {outcome.name for outcome in report.of(Status.SKIPPED)} == {"behind"}
    assert {node.name for node in report.made} == {"drops", "zlast"}
    file = published(home)
    assert asked(file, "select n from custom.endless union all select n from custom.hungry") == [(1,), (1,)]
    assert asked(file, "select count(*) from marts.contact_engagement") == before
    assert build(home / "warehouse.duckdb").problem == ""


@pytest.mark.slow
def test_a_process_that_is_killed_costs_the_model_that_ran(home: Path) -> None:
    ended: list[int] = []

    def kill(number: int, _: int, name: str) -> None:
        if name == "slow" and not ended:
            ended.append(number)
            (pid,) = _building_processes()
            os.kill(pid, signal.SIGKILL)

    folder = home / "models"
    folder.mkdir()
    (folder / "slow.sql").write_text(ENDLESS)
    (folder / "zfine.sql").write_text("select 1 as n")
    report = build_own(home / "warehouse.duckdb", OwnSettings(folder), on_node=kill)
    assert [outcome.name for outcome in report.of(Status.FAILED)] == ["slow"]
    assert [node.name for node in report.made] == ["zfine"]
    assert _building_processes() == []


def _building_processes() -> list[int]:
    """Processes of `own_build` that this one started."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            status = (path / "stat").read_text().rpartition(")")[2].split()
            if (
                int(status[1]) == os.getpid()
                and status[0] != "Z"
                and b"own_build" in (path / "cmdline").read_bytes()
            ):
                found.append(int(path.name))
    return found


@pytest.mark.slow
def test_a_failed_test_of_the_users_is_said_and_the_table_is_there(home: Path) -> None:
    yml = "models: [{ name: twice, data_tests: [{ key: { arguments: { columns: [account] } } }] }]"
    report = made(home, twice="select account from {{ ref('contact_engagement') }}", twice_yml=yml)
    (problem,) = report.problems
    assert problem.startswith("test of twice: ")
    assert [node.name for node in report.made] == ["twice"]


@pytest.mark.slow
def test_a_model_cannot_leave_its_schema_nor_replace_ours(home: Path) -> None:
    report = made(home, mine="{{ config(schema='marts') }} select 1 as x", contact_engagement="select 1 as x")
    assert [node.relation for node in report.made] == ["custom.contact_engagement", "custom.mine"]
    assert asked(home / "warehouse.duckdb", "select count(*) > 1 from marts.contact_engagement") == [(True,)]


# -- what dbt does


@pytest.mark.attack
def test_incremental_models_grow_until_a_person_has_them_begin_anew(home: Path) -> None:
    """Whatever changes beside them: an account, a setting, what ours are made of."""
    grown = (
        "{{ config(materialized='incremental', on_schema_change='append_new_columns') }} select "
        "count(*) as "
        "n from {{ ref('lists') }}"
    )
    grown = grown.replace("{{ ref('lists') }}", "{{ source('source', 'lists') }}")
    counted = "select count(*) from custom.grown"
    made(home, grown=grown)
    with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
        connection.execute("insert into source.business (account, timezone) values ('another', 'Asia/Tokyo')")
        connection.execute("update sync.meta set value = 'of another version' where name = 'models'")
    made(home, grown=grown.replace(" as n ", " as n, 'new' as word "))
    assert asked(home / "warehouse.duckdb", counted) == [(2,)]
    assert asked(home / "warehouse.duckdb", "select count(word) from custom.grown") == [(1,)]
    made(home, full=True)
    assert asked(home / "warehouse.duckdb", counted) == [(1,)]


@pytest.mark.attack
def test_contracts_hooks_snapshots_seeds_and_own_tests_are_dbts(home: Path) -> None:
    columns = "[{ name: x, data_type: integer, constraints: [{ type: not_null }] }]"
    contract = f"{{ name: firm, config: {{ contract: {{ enforced: true }} }}, columns: {columns} }}"
    files = {
        "firm": "{{ config(materialized='incremental', on_schema_change='fail', post_hook='insert into {{ "
        "this }} values (7)') }} "
        "select 1 as x",
        "firm_yml": f"models: [{contract}]",
        "loose": "select 'text' as x",
        "loose_yml": f"models: [{contract.replace('firm', 'loose')}]",
        "seeds/colours.csv": "id,name\n1,red\n",
        "of_seed": "select name from {{ ref('colours') }}",
        "snapshots/kept.sql": "{% snapshot kept %}{{ config(unique_key='x', strategy='check', "
        "check_cols='all') }} "
        "select 1 as x{% endsnapshot %}",
        "tests/alone.sql": "select * from {{ ref('firm') }} where x = 7",
    }
    report = made(home, **files)
    assert {outcome.name for outcome in report.of(Status.FAILED)} == {"loose", "alone"}
    file = published(home)
    assert asked(file, "select x from custom.firm order by 1") == [(1,), (7,)]
    assert asked(file, "select name, (select count(*) from custom.kept) from custom.of_seed") == [("red", 1)]
    made(home, firm=files["firm"].replace("select 1 as x", "select null::integer as x"))
    assert asked(home / "warehouse.duckdb", "select count(*) from custom.firm") == [(2,)], (
        "the constraint is kept with the table"
    )


@pytest.mark.attack
def test_a_dbt_project_of_the_users_with_packages_is_such_a_folder(home: Path) -> None:
    """Its own project files, and what dbt wrote there, do not count."""
    files = {
        "dbt_project.yml": "name: team\nprofile: team\n",
        "packages.yml": "packages: [{ git: https://example.com/words.git }]\n",
        "target/compiled/mine.sql": "no sql",
        "dbt_packages/marketing_sync/dbt_project.yml": "name: marketing_sync\n",
        "dbt_packages/dbt_words/dbt_project.yml": "name: dbt_words\n",
        "dbt_packages/dbt_words/macros/twice.sql": "{% macro twice(n) %}2 * {{ n }}{% endmacro %}"
        "{% macro hidden() %}{{ adapter.quote('x') }}{% endmacro %}",
        "dbt_packages/dbt_words/models/theirs.sql": "select 1 as x",
    }
    report = made(
        home,
        **files,
        **{
            "models/mine.sql": "select {{ dbt_words.twice(21) }} as x from {{ ref('account_daily') }} limit 1",
            "models/hid.sql": "select 1 as {{ dbt_words.hidden() }} from {{ ref('account_daily') }} limit 1",
        },
    )
    assert report.problems == []
    assert {node.relation for node in report.made} == {"custom.mine", "custom.hid"}
    assert asked(home / "warehouse.duckdb", "from custom.mine") == [(42,)]
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        personal = own_columns(connection)
    assert personal["custom.mine"] == {"x": []}
    assert personal["custom.hid"]["x"], "what asks dbt while it is compiled cannot be followed"

    (home / "models" / "dbt_packages" / "dbt_words" / "dbt_project.yml").write_text(
        "name: dbt_words\non-run-start: create table marts.z as select 1 as x\n"
    )
    assert "the package dbt_words has on-run-start: leave it out" in made(home).problem


@pytest.mark.slow
def test_without_dbt_it_says_what_to_install(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warehouse.own_models.find_spec", lambda name: None)
    assert "make extras" in what_is_missing()
    with pytest.raises(DbtMissing, match=r"make extras.+marketing-sync\[models\]"):
        made(home, mine="select 1 as one")
    for file in (home / "models").iterdir():
        file.unlink()
    assert made(home).problems == []


@pytest.mark.slow
def test_what_a_deleted_model_made_goes(home: Path) -> None:
    made(home, one="select 1 as x", two="{{ config(materialized='view') }} select * from {{ ref('one') }}")
    (home / "models" / "two.sql").unlink()
    made(home)
    assert asked(
        home / "warehouse.duckdb", "select table_name from duckdb_columns() where schema_name = 'custom'"
    ) == [("one",)]


@pytest.mark.parametrize("name", ["Vip", "a-b", "../x", "1st", "", "héros"])
def test_a_name_that_no_table_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(WarehouseError, match="cannot be a table's name"):
        new_model(tmp_path, name)


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    new_model(tmp_path, "vip")
    with pytest.raises(WarehouseError, match="is there already"):
        new_model(tmp_path, "vip")


def test_what_the_last_deleted_model_made_goes_too(home: Path) -> None:
    made(home, one="select 1 as x")
    (home / "models" / "one.sql").unlink()
    made(home)
    assert asked(
        home / "warehouse.duckdb", "select count(*) from duckdb_columns() where schema_name = 'custom'"
    ) == [(0,)]


def test_a_new_model_does_not_take_the_name_of_ours(tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match="one of our models"):
        new_model(tmp_path, "contact_engagement", {"contact_engagement"})


@pytest.mark.attack
def test_what_is_wrong_is_remembered_until_it_is_corrected(home: Path) -> None:
    def remembered() -> str:
        with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
            return fact(connection, PROBLEM) or ""

    made(home, wrong="select no_such_column from {{ ref('contact_engagement') }}")
    assert "model wrong" in remembered()
    made(home, wrong="select {{ 1 / 0 }} as x")
    assert "wrong.sql" in remembered()
    made(home, wrong="select 1 as x")
    assert remembered() == ""


def test_a_name_of_no_model_is_said(home: Path) -> None:
    with pytest.raises(NoSuchModel, match="no model nothing in"):
        made(home, one="select 1 as x", select=("nothing",))


@pytest.mark.attack
def test_what_they_made_is_added_to_the_current_copy(home: Path) -> None:
    masking = Masking(PersonalData.DROP, None, 1)
    first = publish(home, masking, check=publish_blockers)
    made(home, people="select account, email from {{ ref('contact_engagement') }}")
    before = asked(published_path(home), "select count(*) from marts.contact_campaign")
    second = publish(home, masking, check=publish_blockers, only_own=True)
    assert second.published_at == first.published_at
    assert second.table_count == first.table_count + 1
    assert second.row_count > first.row_count
    assert earlier(home) == []
    assert asked(published_path(home), "select count(email), count(*) > 0 from custom.people") == [(0, True)]
    assert asked(published_path(home), "select count(*) from marts.contact_campaign") == before
    (home / "models" / "people.sql").unlink()
    assert made(home).removed == ("custom.people",)
    assert publish(home, masking, check=publish_blockers, only_own=True).row_count == first.row_count + 1
    assert asked(
        published_path(home), "select change from sync.schema_changes where table_name = 'custom.people'"
    ) == [("table dropped",)]
