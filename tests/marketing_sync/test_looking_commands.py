"""`status` shows what is configured and what was done, and sends no request."""

from pathlib import Path

import msgspec

from home import output
from tests.fixtures import Command
from tests.pipelines.sandboxes import Sandbox

KEYS = {"MARKETING_API_URL": "https://host.example/1", "MARKETING_API_KEY": "k-123456"}


def test_status_lists_the_accounts(command: Command, service: Sandbox, folder: Path) -> None:
    before = service.count
    ran = command("status", "--json", sandbox=service)
    (found,) = msgspec.json.decode(ran.out, type=output.Status).accounts
    assert (found.account, found.business, found.incomplete) == ("main", "Olive Grove Table", 0)
    assert found.read_at is not None
    assert service.count == before
    url = f"http://{'harbor-' * 12}.example/1"
    table = '[accounts.{0}]\nurl = "{1}"\nkey_env = "KEY_{0}"\n'
    (folder / "accounts.toml").write_text("".join(table.format(name, url + name) for name in "ns"))
    assert url in command("status").out, "in a pipe, no line is broken"


def test_status_lists_accounts_that_were_never_read(command: Command, folder: Path) -> None:
    table = '[accounts.{0}]\nurl = "https://{0}.example/1"\nkey_env = "KEY_{0}"\n'
    (folder / "accounts.toml").write_text("".join(map(table.format, "ns")))
    found = msgspec.json.decode(command("status", "--json").out, type=output.Status).accounts
    assert [(each.account, each.url, each.read_at) for each in found] == [
        ("n", "https://n.example/1", None),
        ("s", "https://s.example/1", None),
    ]
