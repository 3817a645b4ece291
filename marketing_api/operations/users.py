"""What can be requested about users, managers and groups, and how they are written."""

from marketing_api.operation import Effect, an_id, choice, each, read, text, write
from marketing_api.records import users
from marketing_api.records.shapes import listing

#: `collaboration` appears in a variant list only.
_PERMISSIONS = """
    all reputation_center foursquare pinterest social_media email_marketing master_reporting users_and_workflow user_groups
    smart_calendar site_builder asset_manager task_manager notes social_tracker google_analytics email_automation_workflow
    live_hashtags goal_conversion_tracking expedia_affiliate_network behavioral_webhooks lead_scoring landingpages sms_automation
    heatmap email_test salesforce_sync browser_push hubspot_sync zoho_sync pipeline_manager email_inbox_sync campaign_groups webinars
    content_bank meeting_sch insightly_sync ftp_sync simplifi_reports custom_smtp call_center collaboration
"""
PERMISSIONS = tuple(_PERMISSIONS.split())
_TYPE = choice("type", "user", "manager", required=True)
_STATUS = choice("status", "enable", "disable", "1", "0", doc="1 and 0 are the words of a variant.", required=True)
_ID = an_id("id", "User or manager id.", required=True)
_GROUP_ID = an_id("id", "Group id.", required=True)

LISTS = read(
    "user/lists",
    "Users by business.",
    an_id("businessid", "Business id, for an agency."),
    entries_at="users",
    records=(users.User,),
    rows=users.users,
)

MANAGERS = read("user/managers", "All managers.", entries_at="users", records=(users.Manager,), rows=listing(users.Manager))

GROUPS = read("user/groups", "All user groups.", entries_at="groups", records=(users.UserGroup,), rows=listing(users.UserGroup))

_PERSON = (
    *each(text, "fullname", "username", required=True),
    text("password", "Optional on edit in a variant.", required=True, secret=True),
    _TYPE,
    an_id("group", "Group id."),
    choice("permissions", *PERMISSIONS, many=True, doc="Required when no group is given."),
)
_RIGHTS = ("permissions", "group")

ADD = write("user/add", "Create a user or manager.", *_PERSON, needs_one=_RIGHTS)

EDIT = write("user/edit", "Change a user or manager.", _ID, *_PERSON, needs_one=_RIGHTS)

STATUS = write("user/status", "Enable or disable a user or manager.", _ID, _TYPE, _STATUS)

DELETE = write("user/delete", "Delete a user or manager.", _ID, _TYPE, effect=Effect.DELETE)

GROUPSTATUS = write("user/groupstatus", "Enable or disable a user group.", _GROUP_ID, _STATUS)

GROUPDELETE = write("user/groupdelete", "Delete a user group.", _GROUP_ID, effect=Effect.DELETE)
