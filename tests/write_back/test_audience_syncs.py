"""Segments as code: entries say how things should be, and what is not so is sent, nothing else."""

import re
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
from tests.marketing_sync.test_push_command import sent
from tests.pipelines.sandboxes import KEY, Sandbox
from tests.pipelines.test_nightly import failures
from write_back.audience_syncs import AudienceSync, choose_syncs, read_audience_syncs
from write_back.item import State
from write_back.outbox.outbox import Claim, open_outbox

VIP = """
[activations.vip]
query = "select email from source.segment"
tag = "vip"
untag_when_gone = true
"""

PLAN = re.compile(r"^plan (\w+):", re.MULTILINE)
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


def claimed(home: Path) -> int:
    """How many tags the entry wants, as it was pushed last."""
    with open_outbox(home) as outbox:
        return sum(claim.is_wanted for claim in outbox.find_claims("main", "vip").values())


# -- the file


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[activations.vip\n", "cannot be read"),
        ("x = 1\n", "x is not a known table"),
        ("", "has no activation"),
        ('[activations."a b"]\nquery = "select 1"\ntag = "x"', "letters, digits"),
        ('[activations.vip]\ntag = "x"', "query is missing"),
        ('[activations.vip]\nquery = "select 1"', "exactly one of tag and list"),
        ('[activations.vip]\nquery = "select 1"\ntag = "x"\nlist = "y"', "exactly one of tag and list"),
        (
            '[activations.vip]\nquery = "select 1"\nlist = "y"\nuntag_when_gone = true',
            "untag_when_gone needs tag",
        ),
        ('[activations.vip]\nquery = "select 1"\ntag = "y"\nfill_only = true', "fill_only needs list"),
        ('[activations.vip]\nquery = "select 1"\ntag = 7', "tag is a text in quotation marks"),
        ('[activations.vip]\nquery = "select 1"\ntag = "x"\nenabled = "yes"', "enabled is true or false"),
        ('[activations.vip]\nquery = "select 1"\ntag = "x"\nverify = "some"', "verify is one of"),
        ('[activations.vip]\nquery = "select 1"\ntags = "x"', "tags is not a known key; use query, tag"),
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
    assert [each.name for each in choose_syncs(found, [])] == ["vip"]
    assert [each.name for each in choose_syncs(found, ["off"])] == ["off"]
    assert read_audience_syncs(tmp_path / "elsewhere") == {}


# -- who comes and who goes


@pytest.mark.slow
def test_who_enters_is_tagged_and_who_leaves_is_untagged(
    command: Command, segment: Segment, service: Sandbox, home: Path
) -> None:
    segment(6)
    plan = command("push", "activations", sandbox=service)
    assert plan.code == 0, plan.text
    assert "activation vip: 6 people" in plan.out
    assert plan.out.rstrip().endswith("marketing-sync push activations --apply")
    assert (service.count, claimed(home)) == (0, 0)

    assert command("push", "activations", "--apply", sandbox=service).code == 0
    assert (tagged(service), claimed(home)) == (6, 6)

    before = service.count
    idle = command("push", "activations", "--apply", sandbox=service)
    assert "nothing to send: 0 requests" in idle.out
    assert "to send it" not in command("push", "activations", sandbox=service).out
    assert service.count == before

    segment(6, start=1)
    turned = command("push", "activations", "--apply", sandbox=service)
    assert "1 tag to be removed: no entry gives it any more" in turned.out
    assert (tagged(service), claimed(home)) == (6, 6)
    assert set(sent(service, before)) == {"app/me", "addtag", "removetag"}


@pytest.mark.slow
def test_what_the_service_could_not_take_goes_with_the_next_push(
    command: Command, segment: Segment, service: Sandbox, home: Path
) -> None:
    segment(6)
    service.control("faults", **{"1002": "1@emailmarketing/addtag"})
    assert command("push", "activations", "--apply", sandbox=service).code == 1
    service.control("faults", off=1)
    refused = sent(service).count("addtag")
    again = command("push", "activations", "--apply", sandbox=service)
    assert again.code == 0, again.text
    assert (tagged(service), sent(service).count("addtag")) == (6, refused + 6)


@pytest.mark.slow
def test_a_segment_may_be_a_custom_table(
    command: Command, segment: Segment, service: Sandbox, home: Path, folder: Path
) -> None:
    (folder / "activations.toml").write_text(VIP.replace("source.segment", "custom.vips"))
    segment(4)
    (home / "models").mkdir()
    (home / "models" / "vips.sql").write_text("from custom.people limit 3")
    (home / "models" / "people.sql").write_text("from source.segment")
    assert command("push", "activations", "--apply", sandbox=service).code == 0
    assert (tagged(service), claimed(home)) == (3, 3)


@pytest.mark.slow
def test_who_leaves_an_activation_that_does_not_untag_keeps_the_tag(
    command: Command, segment: Segment, service: Sandbox, home: Path, folder: Path
) -> None:
    (folder / "activations.toml").write_text(VIP.replace("true", "false"))
    segment(4)
    command("push", "activations", "--apply", sandbox=service)
    segment(3)
    ran = command("push", "activations", "--apply", sandbox=service)
    assert ran.code == 0, ran.text
    assert (tagged(service), claimed(home)) == (4, 3)


@pytest.mark.parametrize(("before", "count"), [(6, 0), (13, 3)])
@pytest.mark.slow
def test_a_result_that_shrank_too_much_is_refused_until_it_is_accepted(
    command: Command, segment: Segment, service: Sandbox, home: Path, before: int, count: int
) -> None:
    segment(before)
    command("push", "activations", "--apply", sandbox=service)
    segment(count)
    ran = command("push", "activations", "--apply", sandbox=service)
    assert ran.code == 2
    assert "--accept-shrink" in ran.err
    assert tagged(service) == before
    assert command("push", "activations", "vip", "--accept-shrink", "--apply", sandbox=service).code == 0
    assert (tagged(service), claimed(home)) == (count, count)


@pytest.mark.slow
def test_small_result_may_shrink(command: Command, segment: Segment, service: Sandbox, home: Path) -> None:
    segment(3)
    command("push", "activations", "--apply", sandbox=service)
    segment(1)
    assert command("push", "activations", "--apply", sandbox=service).code == 0
    assert (tagged(service), claimed(home)) == (1, 1)


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
    known = "no account is named 'hill'; choose one of these: main"
    assert f"activations.toml, [activations.vip]: {known}" in ran.err


def test_entries_of_another_shard_are_left_to_it(folder: Path, home: Path) -> None:
    (folder / "accounts.toml").write_text(
        '[accounts.harbor]\nurl = "https://x/1"\nshard = "north"\n'
        '[accounts.meadow]\nurl = "https://x/1"\nshard = "south"\n'
    )
    (folder / "activations.toml").write_text(VIP + 'account = "meadow"\n')
    harbor = Connection("harbor", "https://x/1", Secret(KEY))
    syncs = AudienceSyncs(Settings(home, (harbor,), folder=folder, shard="north", activations=True))
    syncs.run_syncs()
    assert syncs.lines == []


def test_what_is_wrong_with_one_does_not_hold_up_the_others(
    command: Command, segment: Segment, service: Sandbox, folder: Path
) -> None:
    (folder / "activations.toml").write_text(
        '[activations.broken]\nquery = "select nothing"\ntag = "x"\n' + VIP
    )
    segment(2)
    ran = command("push", "activations", "--apply", sandbox=service)
    assert ran.code == 1
    assert "marketing-sync: error: activation broken: the query cannot be run" in ran.err
    assert tagged(service) == 2


# -- entries that change, share, disagree or go


def entry(name: str, tag: str = "vip", where: str = "true", *, more: str = "untag_when_gone = true") -> str:
    query = f"select email from source.segment where {where}"
    return f'[activations.{name}]\nquery = "{query}"\ntag = "{tag}"\n{more}\n'


def tags(service: Sandbox) -> dict[str, set[str]]:
    """Address → its tags, of those that have any."""
    contacts = filter(None, service.control("written")["contacts"].values())
    return {each["email"]: set(each["tags"]) for each in contacts if each["tags"]}


Push = Callable[..., tuple[str, list[str]]]


@pytest.fixture
def push(command: Command, segment: Segment, service: Sandbox, folder: Path) -> Push:
    """Push these entries: what is printed, and the operations that were sent."""

    def run(*entries: str, words: tuple[str, ...] = (), code: int = 0) -> tuple[str, list[str]]:
        (folder / "activations.toml").write_text("\n".join(entries))
        before = service.count
        ran = command("push", "activations", *words, "--apply", sandbox=service)
        assert ran.code == code, ran.text
        return ran.out + ran.err, [each for each in sent(service, before) if each != "app/me"]

    return run


@pytest.mark.slow
def test_a_renamed_tag_follows_by_itself(push: Push, segment: Segment, service: Sandbox) -> None:
    segment(3)
    push(entry("vip"))
    said, operations = push(entry("vip", "gold"))
    assert "3 tags to be removed" in said
    assert sorted(set(operations)) == ["addtag", "removetag"]
    assert list(tags(service).values()) == [{"gold"}] * 3
    assert push(entry("vip", "gold"))[1] == []


@pytest.mark.slow
def test_a_shared_tag_stays_while_anybody_wants_it(push: Push, segment: Segment, service: Sandbox) -> None:
    segment(3)
    both = [entry("vip"), entry("other")]
    push(*both)
    (gone, *_) = sorted(tags(service))
    left = entry("vip", where=f"email <> '{gone}'")
    assert push(left, entry("other"))[1] == []
    assert push(left, entry("other", more="enabled = false"))[1] == [], "paused, it still wants it"
    assert push(left, entry("other", where="nothing"), code=1)[1] == [], "so it does when it is broken"
    assert push(left, entry("other", where=f"email <> '{gone}'"))[1] == ["removetag"]
    assert gone not in tags(service)
    assert push(left, entry("other", where=f"email <> '{gone}'"))[1] == []


@pytest.mark.slow
def test_tags_that_differ_in_case_may_be_one(push: Push, segment: Segment, service: Sandbox) -> None:
    segment(1)
    push(entry("vip"))
    assert push(entry("vip", "VIP"))[1] == ["addtag"]
    assert push(entry("vip", "gold"))[1] == ["addtag", "removetag"]
    assert list(tags(service).values()) == [{"gold"}]


@pytest.mark.slow
def test_an_entry_that_is_gone_takes_away_what_only_it_wanted(
    push: Push, segment: Segment, service: Sandbox
) -> None:
    segment(2)
    push(entry("vip"), entry("gold", "gold"), entry("kept", "kept", more=""), entry("shared"))
    said, operations = push(entry("shared"))
    assert "activation gold: not in activations.toml any more" in said
    assert operations == ["removetag"] * 2
    assert list(tags(service).values()) == [{"vip", "kept"}] * 2
    assert push(entry("shared"))[1] == []


def test_account_that_was_removed_is_left_alone(push: Push, segment: Segment, home: Path) -> None:
    segment(1)
    with open_outbox(home) as outbox:
        outbox.claim_subjects("removed", "gold", {"ann@example.com|gold": Claim(True, True)})
    assert push(entry("vip"))[1] == ["addtag"]


@pytest.mark.slow
def test_resync_sends_everything_again(push: Push, segment: Segment) -> None:
    segment(2)
    push(entry("vip"))
    assert push(entry("vip"))[1] == []
    assert push(entry("vip"), words=("--resync",))[1] == ["addtag"] * 2


@pytest.mark.slow
def test_only_the_plan_that_was_looked_at_is_sent(
    command: Command, segment: Segment, service: Sandbox
) -> None:
    segment(2)
    (seen,) = PLAN.findall(command("push", "activations", sandbox=service).out)
    segment(3)
    refused = command("push", "activations", "--apply", "--if-plan", seen, sandbox=service)
    assert refused.code == 2
    assert f"nothing was sent: plan {seen} has changed to plan " in refused.err
    assert service.count == 0
    segment(2)
    sent_now = command("push", "activations", "--apply", "--if-plan", seen, sandbox=service)
    assert (sent_now.code, tagged(service)) == (0, 2)


@pytest.mark.slow
def test_a_value_that_is_there_is_left_by_an_entry_that_only_fills(
    push: Push, segment: Segment, service: Sandbox
) -> None:
    segment(1, columns="'ann@example.com' as email, 'Rome' as city")
    query = '"from source.segment"\nlist = "Corporate catering"\nfill_only = true'
    at_city = f"[activations.at]\nquery = {query}"
    assert "synccontact" in push(at_city)[1]
    segment(1, columns="'ann@example.com' as email, 'Oslo' as city")
    assert push(at_city)[1] == []
    (contact,) = service.control("written")["contacts"].values()
    assert "Rome" in contact["values"].values()


@pytest.mark.slow
def test_a_changed_value_follows_by_itself(push: Push, segment: Segment, service: Sandbox) -> None:
    at = '[activations.at]\nquery = "select email, city from source.segment"\nlist = "Corporate catering"'
    for city in ("Rome", "Oslo"):
        segment(1, columns=f"'ann@example.com' as email, '{city}' as city")
        push(at)
        (contact,) = service.control("written")["contacts"].values()
        assert city in contact["values"].values()
        assert push(at)[1] == []


def test_a_tag_with_a_comma_is_refused(push: Push, segment: Segment) -> None:
    segment(1)
    said, operations = push(entry("vip", "Portland, Oregon"), code=2)
    assert (
        "its tag has a separator in it and would be 2 tags, “Portland”, “Oregon”: write an entry for each"
        in said
    )
    assert operations == []


def test_a_rejected_row_is_told_once_and_never_counts_again(
    push: Push, segment: Segment, service: Sandbox, home: Path
) -> None:
    segment(3, extra="union all select 'nobody'")
    said, operations = push(entry("vip"), words=("--reject-limit", "0"), code=2)
    assert "1 row is invalid, and at most 0 may be invalid, 0 % of 100 rows" in said
    assert "allow more with --reject-limit" in said
    said, operations = push(entry("vip"), code=1)
    assert "at most 5 may be invalid, 5 % of 100 rows" in said
    assert operations == ["addtag"] * 3, "of so few rows a share says nothing"
    segment(4, extra="union all select 'nobody'")
    said, operations = push(entry("vip"))
    assert operations == ["addtag"]
    assert "rejected before" in said
    assert "rejected rows:" not in said
    with open_outbox(home) as outbox:
        pushes = (each.push_id for each in outbox.list_pushes("main"))
        rejected = [
            each.email for push_id in pushes for each in outbox.list_entries(push_id, [State.REJECTED])
        ]
        assert rejected == ["nobody"]
    said, _ = push(entry("vip", where="email <> 'nobody'"))
    assert "rejected before" not in said


def test_a_list_that_is_not_there_is_told_until_it_is(push: Push, segment: Segment) -> None:
    segment(1)
    for _ in range(2):
        at = '[activations.one]\nquery = "from source.segment"\nlist = "Corporate"'
        said, operations = push(at, code=2)
        assert "activation one: there is no list “Corporate” (did you mean" in said
        assert operations == []


def test_what_the_service_refused_is_told_once(push: Push, segment: Segment) -> None:
    segment(1, extra="union all select 'new@example.com'")
    said, _ = push(entry("vip"), code=1)
    assert "rejected by the service" in said
    said, operations = push(entry("vip"))
    assert ("rejected before" in said, operations) == (True, [])
    assert push(entry("vip", "gold", "false"), words=("--accept-shrink",))[1] == ["removetag"], (
        "what was refused is not there to be taken"
    )


def test_rows_of_one_person_that_disagree_are_rejected(
    push: Push, segment: Segment, service: Sandbox
) -> None:
    segment(1, columns="'ann@example.com' as email, unnest(['Rome', 'Oslo']) as city")
    at = '[activations.at]\nquery = "from source.segment"\nlist = "Corporate catering"'
    said, operations = push(at, words=("--reject-limit", "1"), code=1)
    assert "rows of this person disagree about “city”: change the query to return one value" in said
    assert operations == []


@pytest.mark.slow
def test_a_tag_that_a_person_gives_after_it_was_taken_away_stays(
    command: Command, push: Push, segment: Segment, service: Sandbox, folder: Path
) -> None:
    segment(3)
    push(entry("vip"))
    (gone, *_) = sorted(tags(service))
    without = entry("vip", where=f"email <> '{gone}'")
    assert "removetag" in push(without)[1]
    (folder / "rows.csv").write_text(f"email,tag\n{gone},vip\n")
    assert command("push", "tags", "--from", "rows.csv", "--apply", sandbox=service).code == 0
    assert push(without)[1] == push(without)[1] == []
    assert tags(service)[gone] == {"vip"}
    push(entry("vip"))
    assert "removetag" in push(without)[1], "the entry wanted it again since, and does not any more"


@pytest.mark.parametrize("is_wanted", [True, False])
@pytest.mark.slow
def test_somebody_with_a_new_address_is_the_same_person(
    command: Command, push: Push, segment: Segment, service: Sandbox, home: Path, is_wanted: bool
) -> None:
    segment(3)
    push(entry("vip"))
    (old, *_) = sorted(tags(service))
    with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
        ids = connection.execute("select contact_id from source.contacts where email = ?", [old]).fetchall()
        for (contact_id,) in ids:
            words = (f"id={contact_id}", "email=new@example.com")
            changed = command("call", "emailmarketing/editcontact", *words, "--yes", sandbox=service)
            assert changed.code == 0
        connection.execute(
            "update source.contacts set email = 'new@example.com', email_normalized = 'new@example.com' "
            "where email = ?",
            [old],
        )
        connection.execute("update source.segment set email = 'new@example.com' where email = ?", [old])
    now = entry("vip", where="true" if is_wanted else "email <> 'new@example.com'")
    operations = push(now)[1]
    assert operations == ([] if is_wanted else ["removetag"] * len(ids))
    assert ("new@example.com" in tags(service)) == is_wanted
    assert push(now)[1] == []


# -- after a night


@pytest.mark.slow
def test_a_night_runs_them_and_says_what_came_of_each(
    segment: Segment, service: Sandbox, home: Path, folder: Path
) -> None:
    segment(3)
    settings = replace(
        Settings(home, (Connection("main", service.url, Secret(KEY)),)), folder=folder, activations=True
    )
    activations = AudienceSyncs(settings)
    asset = activations.build_asset([dg.AssetKey("models")])
    assert asset.dependency_keys == {dg.AssetKey("models")}

    class Reading:
        sandbox_url = None

    resources = {"reader": dg.ResourceDefinition.hardcoded_resource(Reading()), "settings": settings}
    refused = dg.materialize([asset], resources=resources, raise_on_error=False)
    assert "add `confirm: send`" in failures(refused)["activations"]
    assert service.count == 0
    result = dg.materialize([asset], resources=resources, run_config=standing_order(settings))
    (materialization,) = result.asset_materializations_for_node("activations")
    assert "vip: 3 people, 3 changes, 4 requests" in str(materialization.metadata["result"].value)
    assert activations.lines == ["vip: 3 people, 3 changes, 4 requests"]
    assert activations.problems == []
    segment(0)
    activations.run_syncs()
    assert "its result has 0 people, but 3 of the last 3 are missing" in activations.problems[0]
