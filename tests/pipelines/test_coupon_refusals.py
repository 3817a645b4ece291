"""A service that refuses addresses without coupons is understood in the first night, and not asked more."""

from pathlib import Path

import pytest

from tests.fixtures import Command, StartSandbox
from tests.pipelines.sandboxes import Sandbox, move_account
from tests.pipelines.tables import source

pytestmark = pytest.mark.usefixtures("unrecorded")

CHOSEN = ("sync", "--only", "lists", "contacts", "coupons")


def asked(service: Sandbox, since: int) -> int:
    return sum(entry["operation"] == "emailmarketing/getcoupon" for entry in service.asked(since))


@pytest.mark.slow
def test_it_is_said_once_and_not_asked_again_the_next_night(
    command: Command, start_sandbox: StartSandbox, home: Path
) -> None:
    service = start_sandbox("--coupon-missing", "error")
    first = command(*CHOSEN, sandbox=service)
    assert first.code == 0, first.text
    assert "count as addresses without coupons" in first.out
    before, coupons = service.count, source(home)["coupons"]
    assert asked(service, 0) > 50
    second = command(*CHOSEN, sandbox=service)
    assert second.code == 0, second.text
    assert "addresses without coupons" not in second.out
    assert asked(service, before) == 0

    again = command(*CHOSEN, "--all", sandbox=service)
    assert again.code == 0, again.text
    assert "addresses without coupons" not in again.out, "it was said before"
    assert source(home)["coupons"] == coupons


@pytest.mark.slow
def test_a_refusal_of_those_who_have_coupons_is_reported_and_deletes_nothing(
    command: Command, start_sandbox: StartSandbox, home: Path
) -> None:
    calm = start_sandbox()
    assert command(*CHOSEN, sandbox=calm).code == 0
    coupons = source(home)["coupons"]
    assert coupons
    service = start_sandbox("--coupon-missing", "all")
    move_account(home, service.url)
    ran = command(*CHOSEN, "--all", sandbox=service)
    assert ran.code == 1
    assert "coupons, account main" in ran.out
    assert source(home)["coupons"] == coupons
