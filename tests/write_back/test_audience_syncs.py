"""Segments as code: who entered and who left is pushed, nobody else, and whoever the service has not taken is
tried again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from home.settings import Settings, SettingsError
from marketing_api.client import Connection, Secret
from pipelines.push_jobs import AudienceSyncs, standing_order
from tests.fixtures import Command
from tests.pipelines.sandboxes import KEY, Sandbox
from tests.pipelines.test_nightly import failures
from tests.pipelines.test_push_command import sent
from write_back.audience_syncs import AudienceSync, chosen, read_audience_syncs
from write_back.outbox.outbox import open_outbox

VIP = """
[activations.vip]
query = "select email from source.segment"
tag = "vip"
untag_when_gone = true
"""

#: Who is in the segment from now on: so many of the active people, from a place in their order on.
Segment = Callable[..., None]


@pytest.fixture
def segment(home: Path, service: Sandbox, folder: Path) -> Segment:
    def fill(count: int, start: int = 0, extra: str = "", columns: str = "email") -> None:
        people = (
            "select distinct email from source.contacts where status = 'active' order by email limit "
            f"{count} offset {start}"
        )
        with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
            connection.execute(
                f"create or replace table source.segment as select {columns} from ({people}) {extra}"
            )

    fill(0)
    (folder / "activations.toml").write_text(VIP)
    return fill


def tagged(service: Sandbox) -> int:
    """How many addresses have the tag."""
    contacts = [
        each for each in service.control("written")["contacts"].values() if each and "vip" in each["tags"]
    ]
    return len({each["email"] for each in contacts})


def members(home: Path) -> int:
    with open_outbox(home) as outbox:
        return len(outbox.members("main", "vip"))


# -- the file


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[activations.vip\n", "cannot be read"),
        ("x = 1\n", "x is not known"),
        ("", "names no activation"),
        ('[activations."a b"]\nquery = "select 1"\ntag = "x"', "letters, digits"),
        ('[activations.vip]\ntag = "x"', "query is missing"),
        ('[activations.vip]\nquery = "select 1"', "exactly one of tag and list"),
        ('[activations.vip]\nquery = "select 1"\ntag = "x"\nlist = "y"', "exactly one of tag and list"),
        (
            '[activations.vip]\nquery = "select 1"\nlist = "y"\nuntag_when_gone = true',
            "untag_when_gone needs tag",
        ),
        ('[activations.vip]\nquery = "select 1"\ntag = 7', "tag is a text in quotation marks"),
        ('[activations.vip]\nquery = "select 1"\ntag = "x"\nenabled = "yes"', "enabled is true or false"),
        ('[activations.vip]\nquery = "select 1"\ntag = "x"\nverify = "some"', "verify is one of"),
        ('[activations.vip]\nquery = "select 1"\ntags = "x"', "tags is not known; it takes query, tag"),
    ],
)
def test_a_malformed_file_is_explained(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "activations.toml").write_text(text)
    with pytest.raises(SettingsError, match=r"activations\.toml") as problem:
        read_audience_syncs(tmp_path)
    assert said in str(problem.value)


def test_without_names_the_enabled_ones_run(tmp_path: Path) -> None:
    (tmp_path / "activations.toml").write_text(VIP + VIP.replace("vip]", "off]\nenabled = false"))
    found = read_audience_syncs(tmp_path)
    assert found["vip"] == AudienceSync("vip", "select email from source.segment", "vip", True)
    assert [each.name for each in chosen(found, [])] == ["vip"]
    assert [each.name for each in chosen(found, ["off"])] == ["off"]
    assert read_audience_syncs(tmp_path / "elsewhere") == {}


# -- who comes and who goes


@pytest.mark.slow
def test_who_enters_is_tagged_and_who_leaves_is_untagged(
    command: Command, segment: Segment, service: Sandbox, home: Path
) -> None:
    segment(6)
    plan = command("push", "activations", sandbox=service)
    assert plan.code == 0, plan.text
    assert "6 people; since last time 6 entered, 0 left" in plan.out
    assert plan.out.rstrip().endswith("marketing-sync push activations --apply")
    assert (service.count, members(home)) == (0, 0)

    assert command("push", "activations", "--apply", sandbox=service).code == 0
    assert (tagged(service), members(home)) == (6, 6)

    before = service.count
    idle = command("push", "activations", "--apply", sandbox=service)
    assert "0 entered, 0 left" in idle.out
    assert service.count == before

    segment(6, start=1)
    turned = command("push", "activations", "--apply", sandbox=service)
    assert "1 entered, 1 left" in turned.out
    assert (tagged(service), members(home)) == (6, 6)
    assert set(sent(service, before)) == {"app/me", "addtag", "removetag"}


@pytest.mark.slow
def test_somebody_is_a_member_only_once_it_was_applied(
    command: Command, segment: Segment, service: Sandbox, home: Path
) -> None:
    segment(6)
    service.control("faults", **{"1002": "1@emailmarketing/addtag"})
    failed = command("push", "activations", "--apply", sandbox=service)
    assert failed.code == 1
    assert members(home) == 0
    service.control("faults", off=1)
    refused = sent(service).count("addtag")
    again = command("push", "activations", "--apply", sandbox=service)
    assert "6 entered" in again.out
    assert tagged(service) == 6
    command("push", "activations", "--apply", sandbox=service)  # those that were queued are found to be done
    assert members(home) == 6
    assert sent(service).count("addtag") == refused + 6


@pytest.mark.slow
def test_who_leaves_an_activation_that_does_not_untag_is_forgotten(
    command: Command, segment: Segment, service: Sandbox, home: Path, folder: Path
) -> None:
    (folder / "activations.toml").write_text(VIP.replace("true", "false"))
    segment(4)
    command("push", "activations", "--apply", sandbox=service)
    segment(3)
    ran = command("push", "activations", "--apply", sandbox=service)
    assert "1 left (nothing is sent about those)" in ran.out
    assert (tagged(service), members(home)) == (4, 3)


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.slow
def test_a_result_that_shrank_too_much_is_refused_until_it_is_accepted(
    command: Command, segment: Segment, service: Sandbox, home: Path, count: int
) -> None:
    segment(6)
    command("push", "activations", "--apply", sandbox=service)
    segment(count)
    ran = command("push", "activations", "--apply", sandbox=service)
    assert ran.code == 2
    assert "--accept-shrink" in ran.err
    assert tagged(service) == 6
    assert command("push", "activations", "vip", "--accept-shrink", "--apply", sandbox=service).code == 0
    assert (tagged(service), members(home)) == (count, count)


def test_who_enters_is_put_into_a_list_with_the_columns_of_the_query(
    command: Command, segment: Segment, service: Sandbox, folder: Path
) -> None:
    (folder / "activations.toml").write_text(
        '[activations.vip]\nquery = "from source.segment"\nlist = "Corporate catering"'
    )
    segment(1, columns="'ann@example.com' as email, 'Rome' as city, 'active' as status")
    ran = command("push", "activations", "--apply", sandbox=service)
    assert ran.code == 0, ran.text
    (contact,) = service.control("written")["contacts"].values()
    assert (contact["email"], contact["list_id"]) == ("ann@example.com", 1853)
    assert "Rome" in contact["values"].values()


def test_an_account_that_is_not_there_is_named(
    command: Command, segment: Segment, service: Sandbox, folder: Path
) -> None:
    (folder / "activations.toml").write_text(VIP + 'account = "hill"\n')
    ran = command("push", "activations", sandbox=service)
    assert ran.code == 2
    assert (
        "activations.toml, [activations.vip]: no account is named 'hill'; say which account with "
        "account = …: main" in ran.err
    )


def test_what_is_wrong_with_one_does_not_hold_up_the_others(
    command: Command, segment: Segment, service: Sandbox, folder: Path
) -> None:
    (folder / "activations.toml").write_text(
        '[activations.broken]\nquery = "select nothing"\ntag = "x"\n' + VIP
    )
    segment(2)
    ran = command("push", "activations", "--apply", sandbox=service)
    assert ran.code == 2
    assert "the query cannot be run" in ran.err
    assert tagged(service) == 2


# -- after a night


def test_a_night_runs_them_and_says_what_came_of_each(
    segment: Segment, service: Sandbox, home: Path, folder: Path
) -> None:
    segment(3)
    settings = replace(
        Settings(home, (Connection("main", service.url, Secret(KEY)),)), folder=folder, activations=True
    )
    activations = AudienceSyncs(settings)
    asset = activations.asset([dg.AssetKey("models")])
    assert asset.dependency_keys == {dg.AssetKey("models")}

    class Reading:
        sandbox_url = None

    resources = {"reader": dg.ResourceDefinition.hardcoded_resource(Reading()), "settings": settings}
    refused = dg.materialize([asset], resources=resources, raise_on_error=False)
    assert "add `confirm: send`" in failures(refused)["activations"]
    assert service.count == 0
    result = dg.materialize([asset], resources=resources, run_config=standing_order(settings))
    (materialization,) = result.asset_materializations_for_node("activations")
    assert "vip: 3 people, 3 entered, 0 left, 4 requests" in str(materialization.metadata["result"].value)
    assert activations.lines == ["vip: 3 people, 3 entered, 0 left, 4 requests"]
    assert activations.problems == []
    segment(0)
    activations.run()
    assert "its result has 0 people, the last one had 3" in activations.problems[0]
