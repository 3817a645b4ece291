"""Writes stick and show in later reads."""

from typing import Any

import pytest

from tests.marketing_api.sandbox.asking import NOW, Asking, Refused, asking

MAIL = {"name": "n", "subject": "Written", "fromemail": "a@example.com"}
MAIL |= {"from_name": "f", "reply_to": "r@example.com"}
BODY = {"body": '<a href="https://www.example.com/menu">Menu</a>'}


@pytest.fixture
def ask() -> Asking:
    return asking(contacts=300)


def _ids(ask: Asking, list_id: int) -> list[str]:
    return [one["id"] for one in ask.contacts(list_id)]


def _counts(ask: Asking) -> dict[str, int]:
    return {key: int(value) for key, value in ask.control("state")["contacts_by_list"].items()}


def test_added_contact_shows_in_its_lists_with_its_fields(ask: Asking) -> None:
    before = _counts(ask)
    new = {"status": "Active", "listid": "1801,1814", "email": "New@example.com"}
    answer = ask.data("emailmarketing/addcontact", **new, fields={"9100": "Ada", "9103": "Whitby"})
    found = ask.data("emailmarketing/getcontact", id=answer["id"])["contact"]
    shown = [found[name] for name in ("email", "status", "9100", "9103")]
    assert shown == ["New@example.com", "1", "Ada", "Whitby"]
    after = _counts(ask)
    more = {key: after[key] - before[key] for key in after if after[key] != before[key]}
    assert more == {"1801": 1, "1814": 1}
    assert ask.contacts(1801)[-1] == found


def test_added_contact_has_a_timeline_of_its_subscription(ask: Asking) -> None:
    new = ask.data("emailmarketing/addcontact", status="Active", listid="1801", email="new@example.com")["id"]
    for _ in range(2):
        told = ask.data("emailmarketing/getcontacttimeline", id=new, include="utm,automated")
        assert [entry["key"] for entry in told["timeline"]["data"]] == ["list-subscription"]
        ask.control("advance", days=40)


def test_sync_updates_in_the_list_and_adds_elsewhere(ask: Asking) -> None:
    contact = ask.contacts(1801)[3]
    before = _counts(ask)
    told = {"email": contact["email"], "listid": "1801", "status": "Active"}
    answer = ask.data("emailmarketing/synccontact", **told, fields={"9103": "Oak Park"})
    assert answer["id"] == contact["id"]
    assert ask.data("emailmarketing/getcontact", id=contact["id"])["contact"]["9103"] == "Oak Park"
    assert _counts(ask) == before
    other = ask.data("emailmarketing/synccontact", email="brand.new@example.com", listid="1814", status="1")
    assert other["id"] in _ids(ask, 1814)


def test_synced_twice_while_the_queue_lags_is_one_contact_as_last_synced(ask: Asking) -> None:
    ask.switch("sync-delay", 5)
    for name in ("Ada", "Eve"):
        new = {"email": "brand.new@example.com", "listid": "1801", "status": "Active"}
        ask.data("emailmarketing/synccontact", **new, fields={"9100": name})
    assert ask.control("written")["queued"] == 2
    ask.clock += 6
    (written,) = ask.control("written")["contacts"].values()
    assert (written["email"], written["values"]["9100"]) == ("brand.new@example.com", "Eve")


def test_the_truth_of_what_was_written_is_told_by_contact(ask: Asking) -> None:
    gone, tagged = _ids(ask, 1801)[:2]
    ask.data("emailmarketing/deletecontact", id=gone, listid=1801)
    for _ in range(2):
        note = {"description": "Called", "datetime": "2026-11-20 14:30:00"}
        ask.data("emailmarketing/addactivity", id=tagged, **note)
    ask.data("emailmarketing/addtag", id=tagged, tagname="b,a")
    written = ask.control("written")["contacts"]
    assert written[gone] is None
    assert written[tagged]["tags"] == ["a", "b"]
    assert written[tagged]["activities"] == [[NOW - 1800, "Called"]] * 2


def test_edited_contact_is_found_by_its_new_address_only(ask: Asking) -> None:
    contact = ask.contacts(1801)[3]
    ask.data("emailmarketing/editcontact", id=contact["id"], email="moved.on@example.com", status="Disactive")
    found = ask.data("emailmarketing/getcontactbyemail", email="moved.on@example.com")["contact"]
    assert (found["id"], found["status"]) == (contact["id"], "2")
    with pytest.raises(Refused):
        ask.data("emailmarketing/getcontactbyemail", email=contact["email"], listid=1801)


def test_moved_contact_changes_its_list_and_keeps_its_id(ask: Asking) -> None:
    wanted = _ids(ask, 1801)[4]
    ask.data("emailmarketing/movecontact", id=wanted, listid=1853, sourceid=1801)
    assert wanted not in _ids(ask, 1801)
    assert wanted in _ids(ask, 1853)
    with pytest.raises(Refused):
        ask.data("emailmarketing/movecontact", id=wanted, listid=1814, sourceid=1801)


def test_deleted_contact_stays_away(ask: Asking) -> None:
    wanted = _ids(ask, 1801)[4]
    ask.data("emailmarketing/deletecontact", id=wanted, listid=1801)
    ask.control("advance", days=5)
    assert wanted not in _ids(ask, 1801)
    with pytest.raises(Refused):
        ask.data("emailmarketing/getcontact", id=wanted)


def test_statistics_still_equal_the_timelines_after_writes(ask: Asking) -> None:
    contacts = [one for one in ask.contacts(1801) if one["status"] == "1"]
    for one in contacts[:6]:
        ask.data("emailmarketing/editcontact", id=one["id"], status="Disactive")
    for one in contacts[6:10]:
        ask.data("emailmarketing/movecontact", id=one["id"], listid=1853, sourceid=1801)
    for place in range(8):
        ask.data("emailmarketing/addcontact", status="Active", listid="1801", email=f"new{place}@example.com")
    ask.control("advance", days=60)
    sends: dict[str, list[bool]] = {}
    for contact in ask.all_contacts():
        for entry in ask.data("emailmarketing/getcontacttimeline", id=contact["id"])["timeline"]["data"]:
            if entry["key"] == "email-campaign-sent":
                sends.setdefault(entry["snippet"], []).append(entry["details"][2]["value"] != "N/A")
    items = ask.data("emailmarketing/campaigns", filter="sent", limit=100)["campaigns"]["items"]
    for campaign in items["Sent"]["data"]:
        stats = ask.data("emailmarketing/stats", id=campaign["id"])["campaign"]["stats"]
        assert int(stats["open"].split(" ")[0]) == sum(sends[campaign["subject"]])
    quiet = ask.data("emailmarketing/getcontacttimeline", id=contacts[0]["id"])["timeline"]["data"]
    assert all(entry["timestamp"] <= NOW for entry in quiet if entry["key"] == "email-campaign-sent")


def test_tags_and_activities_are_kept_per_contact(ask: Asking) -> None:
    ask.switch("tags", "contact")
    contact = ask.contacts(1801)[2]
    ask.data("emailmarketing/addtag", email=contact["email"], tagname="vip,guest")
    ask.data("emailmarketing/removetag", id=contact["id"], email=contact["email"], tagname="vip")
    assert ask.data("emailmarketing/getcontact", id=contact["id"])["contact"]["tags"] == ["guest"]
    note = {"description": "Bought: spice box", "datetime": "2026-11-19 08:00:00"}
    ask.data("emailmarketing/addactivity", id=contact["id"], **note)
    entries = ask.data("emailmarketing/getcontacttimeline", id=contact["id"])["timeline"]["data"]
    moments = [entry["datetime"] for entry in entries if entry["snippet"] == "Bought: spice box"]
    assert moments == ["2026-11-19 08:00 AM"]


def test_lists_are_added_changed_and_deleted_with_their_contacts(ask: Asking) -> None:
    new = ask.data("emailmarketing/addlist", name="VIP")["id"]
    ask.data("emailmarketing/addcontact", status="Active", listid=new, email="v@example.com")
    ask.data("emailmarketing/editlist", id=new, name="Very important", doubleOptin="1")
    told = ask.data("emailmarketing/getlist", id=new)["list"]
    assert (told["name"], told["doubleOptin"], len(ask.contacts(new))) == ("Very important", "1", 1)
    ask.data("emailmarketing/deletelist", id=1814)
    names = [one["name"] for one in ask.data("emailmarketing/getlists")["lists"]["items"]]
    kept = ["Newsletter", "Events and tastings", "Online shop", "Corporate catering"]
    assert names == [*kept, "Very important"]
    with pytest.raises(Refused):
        ask.data("emailmarketing/getcontacts", listid=1814)


def _campaign(ask: Asking, group: str) -> set[str]:
    items = ask.data("emailmarketing/campaigns", filter=group.lower(), limit=100)["campaigns"]["items"]
    return {one["id"] for one in items[group]["data"]} if group in items else set()


def test_campaign_is_sent_at_once_unless_draft_or_scheduled(ask: Asking) -> None:
    scheduled = {"isscheduled": "true", "scheduled_datetime": "2026-11-22 09:00:00"}
    now, draft, later = (
        ask.data("emailmarketing/addcampaign", **MAIL, **BODY, lists="1801", **flags)["id"]
        for flags in ({}, {"isdraft": "true"}, scheduled)
    )
    assert now in _campaign(ask, "Sent")
    assert draft in _campaign(ask, "Draft")
    assert later in _campaign(ask, "Scheduled")
    ask.control("advance", days=16)
    assert later in _campaign(ask, "Sent")
    assert draft in _campaign(ask, "Draft")
    stats = ask.data("emailmarketing/stats", id=now)["campaign"]
    assert int(stats["stats"]["open"].split(" ")[0]) > 10
    assert stats["clicks"][0]["url"] == "https://www.example.com/menu"


def test_edited_campaign_shows_its_new_text_and_keeps_its_recipients(ask: Asking) -> None:
    wanted = min(_campaign(ask, "Sent"))
    before = ask.data("emailmarketing/stats", id=wanted)["campaign"]
    ask.data("emailmarketing/editcampaign", id=wanted, **MAIL, **BODY)
    assert ask.data("emailmarketing/getcampaign", id=wanted)["item"]["subject"] == "Written"
    assert ask.data("emailmarketing/stats", id=wanted)["campaign"] == before


def test_deleted_campaign_is_never_sent(ask: Asking) -> None:
    wanted = next(iter(_campaign(ask, "Scheduled")))
    subject = ask.data("emailmarketing/getcampaign", id=wanted)["item"]["subject"]
    ask.data("emailmarketing/deletecampaign", id=wanted)
    ask.control("advance", days=20)
    for contact in ask.contacts(1801)[:40]:
        entries = ask.data("emailmarketing/getcontacttimeline", id=contact["id"])["timeline"]["data"]
        assert subject not in {entry["snippet"] for entry in entries}
    with pytest.raises(Refused):
        ask.data("emailmarketing/getcampaign", id=wanted)


def _posts(ask: Asking) -> dict[str, dict[str, Any]]:
    days = {"from_": "2026-11-01", "to": "2026-12-31"}
    told = ask.data("socialmedia/calendar", **days, includeposted="true", limit=100)
    items = told["calendar"]["items"]
    return {post["id"]: post for day in items.values() for post in day.values()}


def test_posts_are_scheduled_changed_and_deleted(ask: Asking) -> None:
    post = {"channel": "twitter", "channelid": "5501", "message": "Merry https://example.com/x"}
    post |= {"isscheduled": "true", "scheduleddate": "12/24/2026", "scheduledhours": "5:30"}
    new = ask.data("socialmedia/addpost", **post, scheduledampm="pm", trackableLinks="true")["post_id"]
    assert _posts(ask)[new]["channel"]["date"] == "12/24/2026 05:30 PM"
    assert "https://example.com/x" not in _posts(ask)[new]["message"]
    links = ask.data("socialmedia/stats")["stats"]["items"]
    assert "https://example.com/x" in {one["realurl"] for one in links}
    edited = {"message": "Happy", "scheduleddatetime": "2026-12-31 20:00:00"}
    ask.data("socialmedia/editpost", id=new, channel="twitter", **edited)
    assert _posts(ask)[new]["message"] == "Happy"
    assert _posts(ask)[new]["channel"]["date"] == "12/31/2026 08:00 PM"
    ask.data("socialmedia/deletepost", id=new)
    assert new not in _posts(ask)


def test_goals_and_webhooks_are_added_changed_and_deleted(ask: Asking) -> None:
    links = ["https://a.example.com", "https://b.example.com"]
    kind = {"type": "event", "event_type": "links", "event_links": ",".join(links)}
    ask.data("goal/add", domainid=22, name="Two links", **kind)
    goal = ask.data("goal/listbydomain", domainid=22)["goals"]["items"][-1]
    assert (goal["name"], goal["links"]) == ("Two links", links)
    ask.data("goal/edit", id=goal["id"], name="Renamed", type="event", value="12.5")
    assert ask.data("goal/show", id=goal["id"])["goal"]["goal_value"]["value"] == "12.50"
    ask.data("goal/delete", id=goal["id"])
    ask.data("webhook/add", name="Hook", type="page_entry", action_type="poll", domainid=21, delay_seconds=9)
    hook = ask.data("webhook/lists")["webhooks"]["items"][-1]
    assert (hook["name"], hook["type"]) == ("Hook", "On Page Entry")
    assert hook["action_rules"]["delay"]["seconds"] == "9"
    ask.data("webhook/edit", id=hook["id"], name="Hooked", type="page_exit")
    assert ask.data("webhook/show", id=hook["id"])["webhook"]["type"] == "On Page Exit"
    ask.data("webhook/delete", id=hook["id"])
    for operation, wanted in (("goal/show", goal["id"]), ("webhook/show", hook["id"])):
        with pytest.raises(Refused):
            ask.data(operation, id=wanted)


def _users(ask: Asking) -> dict[str, Any]:
    businesses = ask.data("user/lists")["users"]["items"].values()
    return {key: user for one in businesses for key, user in one["users"].items()}


def test_users_managers_and_groups_change_as_written(ask: Asking) -> None:
    person = {"fullname": "U Ser", "username": "u@example.com", "password": "secret"}
    ask.data("user/add", **person, type="user", group=802)
    new = next(key for key, user in _users(ask).items() if user["username"] == "u@example.com")
    ask.data("user/status", id=new, type="user", status="0")
    shown = {"fullname": "U Ser", "username": "u@example.com", "group": "Marketing", "status": "Disabled"}
    assert _users(ask)[new] == shown
    ask.data("user/delete", id=new, type="user")
    assert new not in _users(ask)
    manager = {"type": "manager", "fullname": "New Name", "username": "m@example.com"}
    ask.data("user/edit", id=701, permissions="all", **manager)
    assert ask.data("user/managers")["users"]["items"][0]["fullname"] == "New Name"
    ask.data("user/groupstatus", id=801, status="disable")
    ask.data("user/groupdelete", id=804)
    assert [(one["id"], one["status"]) for one in ask.data("user/groups")["groups"]["items"]] == [
        ("801", "Disabled"), ("802", "Active"), ("803", "Active"),
    ]  # fmt: skip


def test_new_account_is_listed_and_can_be_logged_into(ask: Asking) -> None:
    business = {"business_name": "Pop-up", "business_email": "p@example.com", "business_phone": "1"}
    ask.data("register/createaccount", contact_name="C", plan_id=1, **business)
    new = list(ask.data("user/lists")["users"]["items"])[-1]
    told = ask.data("account/getsubaccountautologin", id=new, expire=60)
    assert (told["name"], told["email"]) == ("Pop-up", "p@example.com")
    assert told["login-url"].startswith("https://")


def test_deleted_review_is_gone(ask: Asking) -> None:
    reviews = ask.data("reputation/direct")["reviews"]
    wanted = reviews["items"][0]["id"]
    ask.data("reputation/deletefeedback", id=wanted)
    assert ask.data("reputation/direct")["reviews"]["count"] == reviews["count"] - 1
    with pytest.raises(Refused):
        ask.data("reputation/getfeedback", id=wanted)


def test_refused_write_changes_nothing(ask: Asking) -> None:
    before = ask.all_contacts()
    for params in ({"listid": "1801,999"}, {"listid": "1801", "email": "no address"}):
        with pytest.raises(Refused):
            ask.data("emailmarketing/addcontact", **{"status": "Active", "email": "x@example.com", **params})
    assert ask.all_contacts() == before


def test_contact_without_an_address_is_nobody_whom_a_phone_number_finds(ask: Asking) -> None:
    ask.data("emailmarketing/addcontact", status="Active", listid=1801)
    assert ask.data("emailmarketing/getcontactsbyphonenumber", phone="nobody")["contacts"]["count"] == 0
