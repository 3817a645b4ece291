"""The rules of behavioural webhooks."""

from marketing_api.sandbox.goals import DOMAINS
from marketing_api.sandbox.rules import CheckedCall, Params, Resource


def _read_members(call: CheckedCall) -> Params:
    call.must_exist("domain", call.ids("domainid"), DOMAINS)
    call.must_exist("list", call.ids("list_id"), call.things("list"))
    return call.params


lists = show = add = edit = delete = Resource("webhook", _read_members)
