"""The rules of conversion goals."""

from marketing_api.sandbox.rules import CheckedCall, Resource, show_list
from marketing_api.sandbox.seed import Thing

#: Tracked domains, named by goals and webhooks.
DOMAINS = (21, 22)
#: Parameters that name links.
_LINKS = ("event_links", "event_videos", "destination_url")


def _read_members(call: CheckedCall) -> Thing:
    call.must_exist("domain", call.ids("domainid"), DOMAINS)
    members: Thing = dict(call.params)
    links = next(filter(None, map(call.words, _LINKS)), None)
    if links:
        members["event_links"] = links
    if call["value"]:
        members["value"] = f"{float(call['value']):.2f}"
    return members


lists = show = add = edit = delete = Resource("goal", _read_members)


def listbydomain(call: CheckedCall) -> Thing:
    found = []
    for goal_id, goal in call.things("goal").items():
        if goal["domainid"] == call["domainid"]:
            found.append(lists.show(call, goal_id, goal))
    return show_list(found)
