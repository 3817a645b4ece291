"""What may be asked about users, managers and groups, and how they are written."""

from __future__ import annotations

from dataclasses import replace

from marketing_api.operation import Effect
from marketing_api.operations.declare import an_id, choice, read, text, write

#: `collaboration` appears in a variant list only.
PERMISSIONS = (
    "all",
    "reputation_center",
    "foursquare",
    "pinterest",
    "social_media",
    "email_marketing",
    "master_reporting",
    "users_and_workflow",
    "user_groups",
    "smart_calendar",
    "site_builder",
    "asset_manager",
    "task_manager",
    "notes",
    "social_tracker",
    "google_analytics",
    "email_automation_workflow",
    "live_hashtags",
    "goal_conversion_tracking",
    "expedia_affiliate_network",
    "behavioral_webhooks",
    "lead_scoring",
    "landingpages",
    "sms_automation",
    "heatmap",
    "email_test",
    "salesforce_sync",
    "browser_push",
    "hubspot_sync",
    "zoho_sync",
    "pipeline_manager",
    "email_inbox_sync",
    "campaign_groups",
    "webinars",
    "content_bank",
    "meeting_sch",
    "insightly_sync",
    "ftp_sync",
    "simplifi_reports",
    "custom_smtp",
    "call_center",
    "collaboration",
)
TYPE = choice("type", "user", "manager", required=True)
STATUS = choice("status", "enable", "disable", "1", "0", doc="1 and 0 are the words of a variant.", required=True)
USER_ID = an_id(doc="User or manager id.", required=True)
GROUP_ID = an_id(doc="Group id.", required=True)

USERS = read("user/lists", "Users by business.", an_id("businessid", "Business id, for an agency."), at="users")

MANAGERS = read("user/managers", "All managers.", at="users")

GROUPS = read("user/groups", "All user groups.", at="groups")

_PERSON = (
    text("fullname", required=True),
    text("username", required=True),
    text("password", "Optional on edit in a variant.", required=True, secret=True),
    TYPE,
    an_id("group", "Group id."),
    choice("permissions", *PERMISSIONS, many=True, doc="Required when no group is given."),
)
_RIGHTS = ("group", "permissions")

ADD_USER = replace(write("user/add", "Create a user or manager.", *_PERSON), needs_one=_RIGHTS)

EDIT_USER = replace(write("user/edit", "Change a user or manager.", USER_ID, *_PERSON), needs_one=_RIGHTS)

SET_USER_STATUS = write("user/status", "Enable or disable a user or manager.", USER_ID, TYPE, STATUS)

DELETE_USER = write("user/delete", "Delete a user or manager.", USER_ID, TYPE, effect=Effect.DELETE)

SET_GROUP_STATUS = write("user/groupstatus", "Enable or disable a user group.", GROUP_ID, STATUS)

DELETE_GROUP = write("user/groupdelete", "Delete a user group.", GROUP_ID, effect=Effect.DELETE)

OPERATIONS = (USERS, MANAGERS, GROUPS, ADD_USER, EDIT_USER, SET_USER_STATUS, DELETE_USER, SET_GROUP_STATUS, DELETE_GROUP)
