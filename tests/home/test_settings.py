"""Settings: what is read from where, and that every mistake is named."""

import datetime as dt
from pathlib import Path

import pytest

from home.settings import Settings, SettingsError, load_settings, network_file_system
from pipelines.reading import ReadOptions, make_budget

LIVE = {"MARKETING_API_URL": "https://api.example.com/1", "MARKETING_API_KEY": "secret-key"}


def test_without_a_key_the_sandbox_stands_in(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, {})
    assert settings.is_sandbox
    assert settings.home == tmp_path / "data" / "sandbox"


def test_a_key_and_an_address_make_one_account_named_main(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, LIVE)
    (connection,) = settings.accounts
    assert (connection.account, connection.url) == ("main", "https://api.example.com/1")
    assert settings.home == tmp_path / "data" / "live"


def test_the_key_is_not_shown(tmp_path: Path) -> None:
    assert "secret-key" not in repr(load_settings(tmp_path, LIVE))


def test_every_account_has_the_redis_that_shares_its_limit_and_it_is_not_shown(tmp_path: Path) -> None:
    settings = load_settings(
        tmp_path, LIVE | {"MARKETING_BUDGET_URL": "rediss://:pass-word@cache.example:6380/1"}
    )
    (connection,) = settings.accounts
    assert connection.budget_url is not None
    assert connection.budget_url.reveal() == "rediss://:pass-word@cache.example:6380/1"
    assert "pass-word" not in repr(settings)


def test_a_wrong_address_of_a_redis_is_not_quoted(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="like redis://HOST:6379/0") as caught:
        load_settings(tmp_path, {"MARKETING_BUDGET_URL": "http://:pass-word@cache.example"})
    assert "pass-word" not in str(caught.value)


def test_the_environment_wins_over_dotenv(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("MARKETING_LOOKBACK_DAYS=3\nMARKETING_SHRINK_LIMIT=0.2\n")
    settings = load_settings(tmp_path, {"MARKETING_LOOKBACK_DAYS": "9"})
    assert (settings.lookback_days, settings.shrink_limit) == (9, 0.2)


def test_accounts_come_from_accounts_toml(tmp_path: Path) -> None:
    (tmp_path / "accounts.toml").write_text(
        '[accounts.north]\nurl = "https://n.example/1"\nkey_env = "NORTH"\nmax_rate = 5\ntimezone = '
        '"Europe/Berlin"\n'
        '[accounts.south]\nurl = "https://s.example/1/"\nkey_env = "SOUTH"\n'
    )
    north, south = load_settings(tmp_path, {"NORTH": "n-key", "SOUTH": "s-key"}).accounts
    assert (north.account, north.max_rate, north.timezone) == ("north", 5, "Europe/Berlin")
    assert (south.account, south.url, south.max_rate) == ("south", "https://s.example/1", None)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"MARKETING_API_KEY": "k"}, "MARKETING_API_URL"),
        ({"MARKETING_API_URL": "https://x/1"}, "MARKETING_API_KEY"),
        ({"MARKETING_API_URL": "ftp://x", "MARKETING_API_KEY": "k"}, "not an address"),
        ({"MARKETING_LOOKBACK_DAYS": "soon"}, "MARKETING_LOOKBACK_DAYS"),
        ({"MARKETING_TIMEZONE": "Mars/Olympus"}, "Europe/Berlin"),
        ({"MARKETING_HISTORY_START": "2015-13-01"}, "MARKETING_HISTORY_START"),
        ({"MARKETING_SHRINK_LIMIT": "2"}, "from 0 to 1"),
        ({"MARKETING_MAX_RATE": "0"}, "above 0"),
        ({"MARKETING_MAX_AGE_DAYS": "0"}, "MARKETING_MAX_AGE_DAYS"),
        ({"MARKETING_MAX_REQUESTS": "some"}, "MARKETING_MAX_REQUESTS"),
        ({"MARKETING_UNTIL": "6 o'clock"}, "like 06:00"),
        ({"MARKETING_SCHEDULE_CRON": "02:00"}, "like 0 2"),
        ({"MARKETING_SCHEDULE_CRON": "0 24 * * *"}, "like 0 2"),
        ({"MARKETING_ALERT_URL": "hooks.example/secret"}, "ALERT_URL: an address like"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, values: dict[str, str], word: str) -> None:
    with pytest.raises(SettingsError, match=word):
        load_settings(tmp_path, values)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[accounts.a\n", "cannot be read"),
        ("", "has no account"),
        ("accounts = 1\n", "has no account"),
        ("[account.a]\n", "account is not a known table"),
        ('[accounts.a]\nurl = "https://x/1"\n', "either key_env"),
        ('[accounts.a]\nurl = "https://x/1"\nkey_env = "ABSENT"\n', "ABSENT"),
        ('[accounts.a]\nurl = "https://x/1"\nkey_env = "K"\nspeed = 3\n', "speed is not a known key"),
        ('[accounts.a]\nurl = "https://x/1"\nkey_env = "K"\nmax_rate = "fast"\n', "max_rate is a number"),
        ('[accounts.a]\nurl = "https://x/1"\nkey_env = "K"\nmax_rate = -1\n', "a number above 0"),
        ('[accounts."a b"]\nurl = "https://x/1"\nkey_env = "K"\n', "letters"),
    ],
)
def test_a_malformed_accounts_toml_is_explained(tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "accounts.toml").write_text(text)
    with pytest.raises(SettingsError, match=word):
        load_settings(tmp_path, {"K": "key"})


def test_an_unreadable_key_is_the_error_of_its_account_only(tmp_path: Path) -> None:
    accounts = '[accounts.a]\nurl = "https://x/1"\nkey_env = "K"\n[accounts.b]\nurl = "https://y/1"\n'
    (tmp_path / "accounts.toml").write_text(f"{accounts}key_file = 'secret'\n")
    good, bad = load_settings(tmp_path, {"K": "key"}).accounts
    assert (good.key.reveal(), good.key_error) == ("key", None)
    assert str(bad.key_error).endswith(
        "[accounts.b]: key_file: the file cannot be read: No such file or directory"
    )


def test_a_malformed_dotenv_names_the_line(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text('MARKETING_LOOKBACK_DAYS=3\n"broken\n')
    with pytest.raises(SettingsError, match="line 2"):
        load_settings(tmp_path, {})


@pytest.mark.parametrize("name", [".env", "accounts.toml"])
@pytest.mark.parametrize(
    ("content", "said"),
    [(b"NAME=\xff", "is not text in UTF-8: save it as UTF-8"), (None, "cannot be read: Is a directory")],
)
def test_a_file_that_is_no_text_is_explained(
    tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    if content is None:
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SettingsError, match=f"{name} {said}"):
        load_settings(tmp_path, {})


def test_a_home_whose_name_is_no_text_is_explained(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"LC_ALL=C\.UTF-8, or MARKETING_HOME"):
        load_settings(tmp_path, {"MARKETING_HOME": "n\udcc3\udcbc"})


@pytest.mark.parametrize(
    ("name", "is_refused"), [("a%2Fb", True), ("q?x", True), ("a\\b", True), ("50%", False), ("h#y z", False)]
)
def test_a_home_whose_name_not_every_part_can_open_is_refused_before_anything_is_read(
    tmp_path: Path, name: str, is_refused: bool
) -> None:
    if is_refused:
        with pytest.raises(SettingsError, match="MARKETING_HOME"):
            load_settings(tmp_path, {"MARKETING_HOME": name})
    else:
        assert load_settings(tmp_path, {"MARKETING_HOME": name}).home == tmp_path / name


def test_history_starts_in_2015_by_default(tmp_path: Path) -> None:
    assert (
        load_settings(tmp_path, {}).history_start == Settings(tmp_path).history_start == dt.date(2015, 1, 1)
    )


def test_what_a_person_says_goes_before_the_settings(tmp_path: Path) -> None:
    settings = load_settings(
        tmp_path,
        {
            "MARKETING_MAX_REQUESTS": "500",
            "MARKETING_UNTIL": "06:00",
            "MARKETING_SCHEDULE_TIMEZONE": "Asia/Tokyo",
        },
    )
    configured, said = make_budget(settings), make_budget(settings, ReadOptions(max_requests=20))
    assert configured is not None
    assert said is not None
    assert (configured.left, said.left) == (500, 20)
    assert configured.until is not None
    assert configured.until.astimezone(dt.UTC).hour == 21, "six o'clock in Tokyo"
    assert make_budget(load_settings(tmp_path, {})) is None


MOUNTS = """\
22 1 0:21 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:22 / /mnt/team\\040share rw - nfs4 server:/team rw
24 23 0:23 / /mnt/team\\040share/disk rw - xfs /dev/sdb rw
25 22 0:24 / /mnt/windows rw shared:2 master:3 - fuseblk /dev/sdc1 rw
26 22 0:25 / /mnt/cloud rw - fuse.sshfs me@server: rw
27 22 0:26 / /mnt/over rw - nfs server:/x rw
28 22 0:27 / /mnt/over rw - ext4 /dev/sdd rw
29 22 0:28 / /mnt/c rw - 9p drvfs rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/ann/data", ""),
        ("/mnt/team share/data", "nfs4"),
        ("/mnt/team share/disk/data", ""),
        ("/mnt/team share elsewhere", ""),
        ("/mnt/windows/data", ""),
        ("/mnt/cloud", "fuse.sshfs"),
        ("/mnt/over/data", ""),
        ("/mnt/c/data", "9p"),
    ],
)
def test_a_home_that_other_machines_may_have_too_is_refused(
    folder: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    monkeypatch.setattr("home.settings._MOUNTS", mounts)
    assert network_file_system(Path(folder)) == kind
    if kind:
        with pytest.raises(SettingsError, match=rf"network file system \({kind}\).*set MARKETING_HOME"):
            load_settings(tmp_path, {"MARKETING_HOME": folder})
        assert load_settings(
            tmp_path, {"MARKETING_HOME": folder, "MARKETING_NETWORK_HOME": "on"}
        ).network_home
    else:
        assert load_settings(tmp_path, {"MARKETING_HOME": folder}).home == Path(folder)


def test_where_the_system_does_not_tell_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("home.settings._MOUNTS", tmp_path / "no mountinfo")
    assert network_file_system(tmp_path) == ""


@pytest.mark.parametrize(
    "url", ["data", "data/live", "data/live/backup", "{}/data/other/../live/x", "link", "~/data/live"]
)
def test_a_backup_and_the_home_are_not_one_in_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data" / "live").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "data" / "live")
    with pytest.raises(SettingsError, match=r"overlap.*MARKETING_BACKUP_DIR"):
        load_settings(tmp_path, LIVE | {"MARKETING_BACKUP_DIR": url.format(tmp_path)})
    for beside in ("data/backup", "data/livelier"):
        load_settings(tmp_path, LIVE | {"MARKETING_BACKUP_DIR": beside})


def test_a_backup_beside_the_homes_of_shards_is_none_of_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "[accounts.{0}]\nurl = 'https://n.example/1'\nkey_env = '{0}'\nshard = '{0}'\n"
    (tmp_path / "accounts.toml").write_text(text.format("NORTH") + text.format("SOUTH"))
    load_settings(tmp_path, {"MARKETING_BACKUP_DIR": "data/live/backup"})
    with pytest.raises(SettingsError, match="overlap"):
        load_settings(tmp_path, {"MARKETING_BACKUP_DIR": "data/live/SOUTH"})


@pytest.mark.parametrize(
    ("north", "south", "is_one"),
    [
        ("key_env = 'A'", "key_env = 'A'", True),
        ("key_env = 'A'", "key_env = 'SAME'", True),
        ("key_env = 'A'\nshard = 'n'", "key_env = 'A'\nshard = 's'", True),
        ("key_env = 'A'", "key_env = 'OTHER'", False),
    ],
)
def test_one_key_is_one_account(tmp_path: Path, north: str, south: str, is_one: bool) -> None:
    text = (
        "[accounts.north]\nurl = 'https://n.example/1'\n{}\n[accounts.south]\nurl = "
        "'https://N.example/1'\n{}\n"
    )
    (tmp_path / "accounts.toml").write_text(text.format(north, south))
    keys = {"A": "one-key", "SAME": "one-key", "OTHER": "another-key"}
    if not is_one:
        assert len(load_settings(tmp_path, keys).accounts) == 2
        return
    with pytest.raises(SettingsError, match="north and south have the same key") as caught:
        load_settings(tmp_path, keys)
    assert "one-key" not in str(caught.value)


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret-key", encoding="utf-8-sig")
    text = f"[accounts.north]\nurl = 'https://n.example/1'\nkey_file = '{tmp_path / 'key'}'\n"
    (tmp_path / "accounts.toml").write_text(text, encoding="utf-8-sig")
    (tmp_path / ".env").write_text("MARKETING_LOOKBACK_DAYS=3\n", encoding="utf-8-sig")
    settings = load_settings(tmp_path, {})
    assert (settings.accounts[0].key.reveal(), settings.lookback_days) == ("secret-key", 3)


def test_variables_that_do_nothing_are_named_with_the_nearest_one(tmp_path: Path) -> None:
    (tmp_path / "accounts.toml").write_text(
        "[accounts.north]\nurl = 'https://n.example/1'\nkey_env = 'MARKETING_NORTH'\n"
    )
    values = {"MARKETING_NORTH": "k", "MARKETING_BACKUP_DIRS": "x", "MARKETING_Q": "", "OTHER": "x"}
    values |= {"MARKETING_HOME": "h", "MARKETING_LOG": "INFO", "MARKETING_KEEP": "logs=9"}
    values |= {"MARKETING_API_URL": "https://n.example/1"}
    address, one, other = load_settings(tmp_path, values).unknown
    assert address.startswith("MARKETING_API_URL is ignored, since accounts.toml exists")
    assert (
        one
        == "MARKETING_BACKUP_DIRS is not a known setting (did you mean MARKETING_BACKUP_DIR?); it is ignored"
    )
    assert other == "MARKETING_Q is not a known setting; it is ignored"
