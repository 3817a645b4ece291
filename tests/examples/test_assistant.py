"""`docs/connect.md`: the line that seals an assistant's connection to the published copy."""

import json
import re
import shutil
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from marketing_api.redaction import Secret
from warehouse.masking import Masking
from warehouse.policies import PersonalData
from warehouse.publish import publish_copy, published_path

ROOT = Path(__file__).parents[2]
KEY = Secret("a key of the tests alone")


def read_init_sql() -> str:
    page = (ROOT / "docs/connect.md").read_text(encoding="utf-8")
    block = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert block
    words = json.loads(block[1])["mcpServers"]["marketing"]["args"]
    return str(words[words.index("--init-sql") + 1])


def publish_home(folder: Path, empty_tables: Path, personal_data: PersonalData) -> Path:
    folder.mkdir()
    shutil.copy(empty_tables, folder)
    publish_copy(folder, Masking(personal_data, KEY if personal_data is PersonalData.HASH else None))
    return published_path(folder)


@pytest.fixture(scope="module")
def hashed(tmp_path_factory: pytest.TempPathFactory, empty_tables: Path) -> Path:
    return publish_home(tmp_path_factory.mktemp("assistant") / "home", empty_tables, PersonalData.HASH)


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_text('{other}')",
        "select * from read_csv('{other}')",
        "from '{other}'",
        "copy (select 1) to '{other}.written'",
        "attach '{other}.duckdb'",
        "export database '{other}.exported'",
        "load httpfs",
        "set enable_external_access = true",
        "set memory_limit = '100GB'",
        "reset lock_configuration",
        "create table main.x as select 1",
    ],
)
def test_the_sealed_copy_gives_access_to_nothing_else(hashed: Path, tmp_path: Path, sql: str) -> None:
    other = tmp_path / "secret.txt"
    other.write_text("secret")
    with closing(duckdb.connect(str(hashed), read_only=True)) as connection:
        connection.execute(read_init_sql())
        with pytest.raises(duckdb.Error):
            connection.execute(sql.format(other=other)).fetchall()
    assert list(tmp_path.iterdir()) == [other]


def test_the_sealed_copy_has_a_query_for_each_question_of_a_mart(hashed: Path) -> None:
    with closing(duckdb.connect(str(hashed), read_only=True)) as connection:
        connection.execute(read_init_sql())
        questions = connection.execute("select mart, name, sql from sync.questions where kind = 'question'")
        assert any(
            mart == "marts.campaign_performance"
            and name == "Which subjects lose people?"
            and "from marts" in sql
            for mart, name, sql in questions.fetchall()
        )
        metrics = connection.execute("select name from sync.questions where kind = 'metric'").fetchall()
        assert ("click_rate",) in metrics


def test_a_copy_that_keeps_personal_data_is_refused(tmp_path: Path, empty_tables: Path) -> None:
    kept = publish_home(tmp_path / "home", empty_tables, PersonalData.KEEP)
    with (
        closing(duckdb.connect(str(kept), read_only=True)) as connection,
        pytest.raises(duckdb.Error, match="keeps personal data"),
    ):
        connection.execute(read_init_sql())
