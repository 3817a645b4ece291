"""Shards of accounts.toml: which accounts and home a process works on, what a run needs."""

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import msgspec
import pytest

from home.folder import prepare_home
from home.identity import FILE, SANDBOX, Identity, check_kind
from home.settings import SHARD_TAG, SettingsError, load_settings
from pipelines.definitions import build_definitions
from pipelines.schedules import nightly_schedule
from tests.dialects.server import serve
from tests.fixtures import STANDING, Command
from tests.pipelines.sandboxes import KEY
from tests.pipelines.tables import query

ACCOUNTS = """
[accounts.harbor]
url = "{url}"
key_env = "HARBOR_KEY"
shard = "north"

[accounts.meadow]
url = "{url}"
key_file = "{folder}/meadow.key"
shard = "south"
"""
BOTH = {"HARBOR_KEY": "harbor-key"}


@pytest.fixture
def declared(folder: Path) -> Path:
    (folder / "accounts.toml").write_text(ACCOUNTS.format(url="https://x/1", folder=folder))
    (folder / "meadow.key").write_text("meadow-key\n")
    return folder


def test_a_shard_has_its_accounts_and_a_home_of_its_own(declared: Path) -> None:
    settings = load_settings(declared, BOTH | {"MARKETING_SHARD": "south", "MARKETING_HOME": "homes"})
    assert [(account.account, account.key.reveal()) for account in settings.accounts] == [
        ("meadow", "meadow-key")
    ]
    assert (settings.home, settings.shards) == ((declared / "homes" / "south").resolve(), ())


def test_keys_of_other_shards_need_not_be_there(declared: Path) -> None:
    assert load_settings(declared, {"MARKETING_SHARD": "south"}).accounts
    with pytest.raises(SettingsError, match="HARBOR_KEY"):
        load_settings(declared, {"MARKETING_SHARD": "north"})


def test_without_a_picked_shard_no_key_is_read(declared: Path) -> None:
    settings = load_settings(declared, {})
    assert (settings.accounts, settings.shards, settings.is_sandbox) == ((), ("north", "south"), False)


def test_a_base_folder_that_is_a_sandbox_home_keeps_no_shard_from_its_accounts(declared: Path) -> None:
    settings = load_settings(declared, {})
    prepare_home(settings.home)
    (settings.home / FILE).write_bytes(msgspec.json.encode(Identity("1", SANDBOX)))
    check_kind(settings)


@pytest.mark.parametrize(
    ("text", "shard", "word"),
    [
        (
            ACCOUNTS,
            "east",
            "MARKETING_SHARD='east': no account of accounts.toml has this shard; there are north, south",
        ),
        (
            ACCOUNTS.replace('shard = "south"', ""),
            "north",
            r"\[accounts.meadow\]: shard needs .* for all accounts or none",
        ),
        (ACCOUNTS.replace('"south"', '"dagster"'), "north", r"\[accounts.meadow\]: shard needs"),
        (ACCOUNTS.replace('"south"', '"../south"'), "north", r"\[accounts.meadow\]: shard needs"),
        (ACCOUNTS.replace("key_env", 'key_file = "x"\nkey_env'), "north", "either key_env"),
        (ACCOUNTS.replace('"{folder}/meadow.key"', '"absent"'), "south", "key_file: the file cannot be read"),
    ],
)
def test_what_is_wrong_with_shards_is_said(declared: Path, text: str, shard: str, word: str) -> None:
    (declared / "accounts.toml").write_text(text.format(url="https://x/1", folder=declared))
    with pytest.raises(SettingsError, match=word):
        load_settings(declared, BOTH | {"MARKETING_SHARD": shard})


def test_a_shard_without_a_file_of_accounts_is_refused(folder: Path) -> None:
    with pytest.raises(SettingsError, match="there are none"):
        load_settings(folder, {"MARKETING_SHARD": "north"})


@pytest.mark.parametrize(
    "words", [["sync"], ["push", "contacts", "--from", "x.csv"], ["status"], ["publish"]]
)
def test_a_command_of_one_home_asks_for_the_shard(command: Command, declared: Path, words: list[str]) -> None:
    ran = command(*words)
    assert (ran.code, "set MARKETING_SHARD to one of north, south" in ran.err) == (2, True)


# -- runs


@pytest.fixture
def live(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Two shards whose accounts are the same sandbox."""
    with serve(STANDING) as url:
        (folder / "accounts.toml").write_text(ACCOUNTS.format(url=url, folder=folder))
        (folder / "meadow.key").write_text(KEY)
        monkeypatch.setenv("HARBOR_KEY", KEY)
        monkeypatch.setenv("MARKETING_HOME", str(folder / "homes"))
        yield folder


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_a_run_fills_the_home_of_the_shard_that_its_tag_names(
    live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(live)
    monkeypatch.setenv("DAGSTER_HOME", str(prepare_home(settings.home) / "dagster"))
    job = build_definitions(settings).resolve_job_def("nightly_sync")
    with dg.DagsterInstance.get() as instance:
        ran = job.execute_in_process(
            instance=instance, asset_selection=[dg.AssetKey(["source", "lists"])], tags={SHARD_TAG: "south"}
        )
        missing = job.execute_in_process(
            instance=instance, asset_selection=[dg.AssetKey(["source", "lists"])], raise_on_error=False
        )
    assert ran.success
    assert query(live / "homes" / "south", "select distinct account from source.lists") == [("meadow",)]
    assert not (live / "homes" / "north").exists()
    assert not missing.success, "a run without the tag must not choose a home by itself"


def test_the_schedule_requests_one_run_a_shard(declared: Path) -> None:
    tags = json.dumps({"dagster-k8s/config": {"volume": "marketing-{shard}"}, "team": "data"})
    settings = load_settings(declared, {"MARKETING_RUN_TAGS": tags})
    schedule = nightly_schedule(settings)
    moment = dt.datetime(2026, 11, 23, 2, tzinfo=dt.UTC)
    with dg.DagsterInstance.ephemeral() as instance:
        requests = (
            schedule.evaluate_tick(
                dg.build_schedule_context(instance, scheduled_execution_time=moment)
            ).run_requests
            or []
        )
    assert [each.run_key for each in requests] == [
        f"{moment.isoformat()} north",
        f"{moment.isoformat()} south",
    ]
    assert [each.tags[SHARD_TAG] for each in requests] == ["north", "south"]
    assert [json.loads(each.tags["dagster-k8s/config"])["volume"] for each in requests] == [
        "marketing-north",
        "marketing-south",
    ]
    assert {each.tags["team"] for each in requests} == {"data"}


def test_tags_that_are_no_object_are_refused(declared: Path) -> None:
    with pytest.raises(SettingsError, match="a JSON object is needed"):
        load_settings(declared, {"MARKETING_RUN_TAGS": "[1]"})
