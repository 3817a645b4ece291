"""The judge of pushes: who does exactly what a file asks for is found right, and every other effect is found
out."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import pytest

from . import generate, push_files
from .account import Account
from .push_files import File
from .server import Service, serve
from .test_server import data
from .write_truth import differences

MAIL = "emailmarketing"
DRAWS: list[Callable[..., File]] = [
    push_files.activities,
    push_files.tags,
    push_files.contacts,
]


@pytest.fixture
def made() -> Account:
    return generate.account(31, generate.Sizes(contacts=20), zone="America/St_Johns")


def naively(service: Service, file: File) -> None:
    """What the file asks for, one request after another, straight from what the generator knows."""
    for (contact_id, local, said), count in file.activities.items():
        for _ in range(count):
            data(
                service,
                f"{MAIL}/addactivity",
                id=contact_id,
                description=said,
                datetime=local.strftime("%Y-%m-%d %H:%M:%S"),
            )
    for contact_id, wanted in file.tags.items():
        for name, is_there in wanted.items():
            data(service, f"{MAIL}/{'addtag' if is_there else 'removetag'}", id=contact_id, tagname=name)
    for (list_id, email), (status, values) in file.contacts.items():
        word = {} if status is None else {"status": "Disactive" if status == 2 else "Active"}
        fields = {f"fields[{name}]": value for name, value in values.items()}
        data(service, f"{MAIL}/synccontact", email=email, listid=list_id, **word, **fields)


@pytest.mark.parametrize("draw", DRAWS)
def test_what_a_file_asks_for_is_found_right_and_nothing_else(
    made: Account, draw: Callable[..., File]
) -> None:
    before, file = copy.deepcopy(made), draw(made, random.Random(1), 40)
    with serve(made) as service:
        assert differences(before, service.world, file), "nothing was sent yet"
        naively(service, file)
        assert differences(before, service.world, file) == []


def _another_activity(service: Service, made: Account) -> None:
    data(
        service,
        f"{MAIL}/addactivity",
        id=made.members[3].contact_id,
        description="once more",
        datetime="2026-03-01 10:00:00",
    )


def _another_status(service: Service, made: Account) -> None:
    data(service, f"{MAIL}/editcontact", id=made.members[3].contact_id, status="Bounced")


def _another_contact(service: Service, made: Account) -> None:
    data(service, f"{MAIL}/synccontact", email="stranger@example.com", listid=made.lists[0].list_id)


def _another_tag(service: Service, made: Account) -> None:
    data(service, f"{MAIL}/addtag", id=made.members[3].contact_id, tagname="other")


def _another_list(service: Service, made: Account) -> None:
    member = made.members[3]
    data(service, f"{MAIL}/deletecontact", id=member.contact_id, listid=member.list_id)


@pytest.mark.parametrize(
    "slip", [_another_activity, _another_status, _another_contact, _another_tag, _another_list]
)
def test_every_other_effect_is_found_out(made: Account, slip: Callable[[Service, Any], None]) -> None:
    before = copy.deepcopy(made)
    with serve(made) as service:
        slip(service, made)
        assert len(differences(before, service.world)) >= 1
