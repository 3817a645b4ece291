import ast
import re
from pathlib import Path

import pytest

from docs.generate import operations as operations_page
from marketing_api import records
from marketing_api.errors import InvalidCall
from marketing_api.operation import Effect, Kind, Operation
from marketing_api.operations import ALL, AREAS, find

#: The endpoints as the specification's tables list them.
GET = """
app/me reputation/direct reputation/online reputation/getfeedback reputation/deletefeedback reputation/sentiment reputation/stats
socialmedia/channels socialmedia/calendar socialmedia/stats socialmedia/getpost
emailmarketing/campaigns emailmarketing/getcampaign emailmarketing/stats
emailmarketing/getcontacts emailmarketing/getcontactbyemail emailmarketing/getcontactsbyphonenumber emailmarketing/getcontact
emailmarketing/getcontacttimeline emailmarketing/getcontacttimelinebyemailaddress emailmarketing/getcoupon
emailmarketing/getlists emailmarketing/getlist emailmarketing/getaudiences
user/lists user/managers user/groups goal/lists goal/listbydomain goal/show webhook/lists webhook/show account/getsubaccountautologin
"""
POST = """
socialmedia/addpost socialmedia/editpost socialmedia/deletepost
emailmarketing/addcampaign emailmarketing/editcampaign emailmarketing/deletecampaign
emailmarketing/addcontact emailmarketing/editcontact emailmarketing/synccontact emailmarketing/movecontact emailmarketing/deletecontact
emailmarketing/addactivity emailmarketing/addtag emailmarketing/removetag
emailmarketing/addlist emailmarketing/editlist emailmarketing/deletelist
user/status user/add user/edit user/delete user/groupdelete user/groupstatus
goal/add goal/edit goal/delete webhook/add webhook/edit webhook/delete register/createaccount
"""
CHANNELS = "all yelp tripadvisor citysearch foursquare googleplaces zagat menupage opentable"
NETWORKS = "facebook twitter linkedin"
PPC = "google bing facebook twitter linkedin"
GOAL_TYPES = "url duration pages ppc event funnel"
STATUSES = "Active Disactive 0 1 2 3"
SWITCH = "enable disable 1 0"
CHOICES = {
    "reputation/direct": {"filter": "today lastweek lastmonth date"},
    "reputation/online": {"channels": CHANNELS},
    "reputation/sentiment": {"filter": "all positive negative neutral", "channels": CHANNELS},
    "reputation/stats": {"filter": "all reviews socialmedia feedbackhub"},
    "socialmedia/calendar": {"channels": f"all {NETWORKS}", "sort": "asc desc"},
    "socialmedia/stats": {"channels": f"all {NETWORKS} pinterest", "sort": "asc desc"},
    "socialmedia/getpost": {"channel": NETWORKS},
    **{
        f"socialmedia/{name}": {
            # the last two: observations 23 and 46
            "channel": f"{NETWORKS} pinterest instagram linkedin_company tiktok",
            "scheduledampm": "AM PM am pm",
            "channels": f"all {NETWORKS}",
        }
        for name in ("addpost", "editpost")
    },
    "socialmedia/deletepost": {"channel": NETWORKS},
    "emailmarketing/campaigns": {"filter": "all sent scheduled draft automation"},
    **{
        f"emailmarketing/{name}": {"type": "standard automated"}
        for name in ("getcampaign", "stats", "addcampaign", "editcampaign", "deletecampaign")
    },
    **{
        f"emailmarketing/{name}": {"include": "utm automated"}
        for name in ("getcontacttimeline", "getcontacttimelinebyemailaddress")
    },
    **{
        f"emailmarketing/{name}": {"status": STATUSES}
        for name in ("addcontact", "editcontact", "synccontact")
    },
    **{
        f"emailmarketing/{name}": {"doubleOptin": "0 1", "communications": "0 1"}
        for name in ("addlist", "editlist")
    },
    "user/status": {"type": "user manager", "status": SWITCH},
    "user/delete": {"type": "user manager"},
    "user/groupstatus": {"status": SWITCH},
    **{
        f"goal/{name}": {
            "type": GOAL_TYPES,
            "value_type": "fixed variable",
            "ppc_networks": PPC,
            "event_type": "links videos form",
            "goal_event_filter": "any all",
            "form_identity_type": "id name",
        }
        for name in ("add", "edit")
    },
    **{
        f"webhook/{name}": {
            "type": "page_exit page_entry goal_trigger",
            "action_type": "html_msg form poll redirection trigger_js",
            "action_targetusers": "all subscribers anonymous",
            "action_devicefilter": "all desktop mobile",
            "action_ppcfilter": PPC,
            "action_frequency": "repeat one_time",
            "action_style": "popup sticky_bar",
        }
        for name in ("add", "edit")
    },
    "register/createaccount": {
        "commission_structure": "1 2",
        **dict.fromkeys(("disable_billing_access", "disable_settings_access", "pay_on_signup"), "0 1"),
    },
}
#: Required by the primary rule or by a variant that disagrees with it.
REQUIRED = {
    "reputation/getfeedback": "id",
    "reputation/deletefeedback": "id",
    "reputation/stats": "from to",
    "socialmedia/calendar": "from to",
    "socialmedia/getpost": "id channel",
    "socialmedia/addpost": "message channel channelid",
    "socialmedia/editpost": "id channel",
    "socialmedia/deletepost": "id",
    "emailmarketing/campaigns": "filter",
    "emailmarketing/getcampaign": "id type",
    "emailmarketing/stats": "id type",
    "emailmarketing/addcampaign": "name subject fromemail from_name reply_to body type",
    "emailmarketing/editcampaign": "id name subject fromemail from_name reply_to body type",
    "emailmarketing/deletecampaign": "id type",
    "emailmarketing/getcontacts": "listid",
    "emailmarketing/getcontactbyemail": "email",
    "emailmarketing/getcontactsbyphonenumber": "phone",
    "emailmarketing/getcontact": "id",
    "emailmarketing/getcontacttimeline": "id",
    "emailmarketing/getcontacttimelinebyemailaddress": "email",
    "emailmarketing/getcoupon": "email",
    "emailmarketing/addcontact": "status listid email",
    "emailmarketing/editcontact": "id",
    "emailmarketing/synccontact": "email listid",
    "emailmarketing/movecontact": "id listid sourceid",
    "emailmarketing/deletecontact": "id listid",
    "emailmarketing/addactivity": "id description datetime",
    "emailmarketing/addtag": "email tagname",
    "emailmarketing/removetag": "email id tagname",
    "emailmarketing/getlist": "id",
    "emailmarketing/deletelist": "id",
    "user/status": "id type status",
    "user/add": "fullname username password type",
    "user/edit": "id fullname username password type",
    "user/delete": "id type",
    "user/groupdelete": "id",
    "user/groupstatus": "id status",
    "goal/listbydomain": "domainid",
    "goal/show": "id",
    "goal/add": "domainid name type",
    "goal/edit": "id name type",
    "goal/delete": "id",
    "webhook/show": "id",
    "webhook/add": "name type action_type domainid",
    "webhook/edit": "id name type action_type domainid",
    "webhook/delete": "id",
    "register/createaccount": "contact_name business_name business_email business_phone plan_id "
    "business_service_name",
    "account/getsubaccountautologin": "id",
}
_LIST = (
    "name email_subject reply_to fromemail from_name doubleOptin notify notify_email success_email "
    "success_message error_message"
)
REQUIRED |= {"emailmarketing/addlist": _LIST, "emailmarketing/editlist": f"id {_LIST}"}

every = pytest.mark.parametrize("operation", ALL.values(), ids=ALL)


def test_there_are_63_operations_32_of_them_reads() -> None:
    assert len(ALL) == 63
    assert sum(operation.is_read for operation in ALL.values()) == 32


def test_names_and_methods_are_those_of_the_specification() -> None:
    assert {name for name, operation in ALL.items() if operation.method == "GET"} == set(GET.split())
    assert {name for name, operation in ALL.items() if operation.method == "POST"} == set(POST.split())


@every
def test_what_is_required_satisfies_every_variant(operation: Operation) -> None:
    required = {parameter.name for parameter in operation.parameters if parameter.required}
    assert required == set(REQUIRED.get(operation.name, "").split())


@every
def test_choices_are_those_of_the_specification(operation: Operation) -> None:
    choices = {
        parameter.name: " ".join(parameter.choices) for parameter in operation.parameters if parameter.choices
    }
    if operation.name in ("user/add", "user/edit"):
        assert len(choices.pop("permissions").split()) == 42
        assert choices == {"type": "user manager"}
    else:
        assert choices == CHOICES.get(operation.name, {})


def test_deletions_are_declared_as_such() -> None:
    assert {name for name, operation in ALL.items() if operation.effect is Effect.DELETE} == {
        name for name in ALL if "delete" in name.partition("/")[2]
    }


def test_what_reaches_people_is_declared_as_such() -> None:
    assert {name for name, operation in ALL.items() if operation.effect is Effect.SEND} == {
        "socialmedia/addpost",
        "socialmedia/editpost",
        "emailmarketing/addcampaign",
        "emailmarketing/editcampaign",
        "register/createaccount",
    }


def test_passwords_and_the_auto_login_url_are_secret() -> None:
    secret = {
        (name, parameter.name)
        for name, operation in ALL.items()
        for parameter in operation.parameters
        if parameter.secret
    }
    assert secret == {
        ("user/add", "password"),
        ("user/edit", "password"),
        ("register/createaccount", "business_password"),
    }
    assert [name for name, operation in ALL.items() if operation.is_secret] == [
        "account/getsubaccountautologin"
    ]


def test_writes_answer_with_the_observed_members() -> None:
    with_id = {name for name, operation in ALL.items() if operation.result == ("id", "item")}
    assert with_id == {
        f"emailmarketing/{name}" for name in ("addcontact", "synccontact", "addlist", "addcampaign")
    }
    assert ALL["socialmedia/addpost"].result == ("post_id", "item")
    others = {
        operation.result for name, operation in ALL.items() if not operation.is_read and name not in with_id
    } - {("post_id", "item")}
    assert others == {("item",)}


def test_comma_separated_parameters() -> None:
    many = {
        (name, parameter.name)
        for name, operation in ALL.items()
        for parameter in operation.parameters
        if parameter.many
    }
    assert many >= {
        ("reputation/online", "channels"),
        ("reputation/sentiment", "filter"),
        ("emailmarketing/addcontact", "listid"),
        ("emailmarketing/synccontact", "listid"),
        ("emailmarketing/addcampaign", "audiences"),
        ("emailmarketing/addcampaign", "lists"),
        ("emailmarketing/addtag", "tagname"),
        ("emailmarketing/getcontacttimeline", "include"),
        ("user/add", "permissions"),
        ("socialmedia/addpost", "channelid"),
    }


def test_listings_that_page() -> None:
    paged = {name for name, operation in ALL.items() if operation.is_paged}
    assert paged == {
        "socialmedia/calendar",
        "emailmarketing/campaigns",
        "emailmarketing/getcontacts",
        "emailmarketing/getlists",
    }
    for name in paged:
        assert {"limit", "page"} <= {parameter.name for parameter in ALL[name].parameters}


@every
def test_a_read_has_its_payload_and_its_records_or_is_a_look_up(operation: Operation) -> None:
    assert bool(operation.records) == bool(operation.rows)
    assert operation.is_read == bool(operation.at or operation.members)
    assert operation.is_read or not operation.records


def test_reads_that_fill_no_table_are_the_look_ups() -> None:
    assert {name for name, operation in ALL.items() if operation.is_read and not operation.records} == {
        "account/getsubaccountautologin",
        "reputation/getfeedback",
        "emailmarketing/getcontact",
        "emailmarketing/getcontactbyemail",
        "emailmarketing/getcontactsbyphonenumber",
        "emailmarketing/getcontacttimelinebyemailaddress",
    }


@every
def test_parameter_names_are_unique_ignoring_case(operation: Operation) -> None:
    names = [parameter.name.lower() for parameter in operation.parameters]
    assert len(names) == len(set(names))


def test_every_record_field_is_described() -> None:
    for record in {record for operation in ALL.values() for record in operation.records}:
        assert record.__doc__
        for name, field in record.model_fields.items():
            assert field.description, f"{record.__name__}.{name}"


@pytest.mark.parametrize(
    "name",
    ["emailmarketing/getcontacts", "/EmailMarketing/getContacts.JSON", " emailmarketing/getcontacts.json "],
)
def test_find_folds_case_and_forgives_the_ending(name: str) -> None:
    assert find(name) is ALL["emailmarketing/getcontacts"]


@pytest.mark.parametrize(
    ("name", "near"),
    [("emailmarketing/getcontact5", "emailmarketing/getcontact"), ("addtag", "emailmarketing/addtag")],
)
def test_unknown_operation_names_a_near_one(name: str, near: str) -> None:
    with pytest.raises(InvalidCall, match=near):
        find(name)


def test_a_list_of_a_million_contacts_has_time() -> None:
    assert ALL["emailmarketing/getcontacts"].timeout == 300


def test_reference_page_shows_every_operation_and_parameter() -> None:
    """Parameters that an earlier operation ends with, too, are in its table only."""
    text = operations_page()
    sections = {name: text.partition(f"### {name}\n")[2].partition("\n##")[0] for name in ALL}
    for operation in ALL.values():
        section = sections[operation.name]
        assert section
        other = re.search(r"those of \[(.+?)\]", section)
        listed = section + (sections[other[1]] if other else "")
        for parameter in operation.parameters:
            assert f"\n| `{parameter.name}` " in listed


@pytest.mark.parametrize("name", ["fields", "shapes", "values"])
def test_what_reads_any_record_does_not_import_operations(name: str) -> None:
    for node in ast.walk(
        ast.parse(Path(records.__file__).with_name(f"{name}.py").read_text(encoding="utf-8"))
    ):
        if isinstance(node, ast.ImportFrom):
            assert not (node.module or "").startswith("marketing_api.operation")


def test_areas_hold_every_operation_once() -> None:
    assert [operation for operations in AREAS.values() for operation in operations] == list(ALL.values())
    assert all(parameter.kind in Kind for operation in ALL.values() for parameter in operation.parameters)
