from typing import Any

import pytest

from marketing_api.operations import webhooks
from marketing_api.records.fields import Unread
from marketing_api.records.webhooks import Webhook
from tests.marketing_api import samples
from tests.marketing_api.responses import read, records


def test_nested_members_of_a_webhook_become_columns() -> None:
    (hook,) = records(Webhook, webhooks.SHOW, samples.WEBHOOK_DETAIL, id=61)
    assert (hook.webhook_id, hook.domain_id, hook.url_filter, hook.url_link) == (
        61,
        2,
        "Matches Exactly",
        "https://corner.example/",
    )
    assert (hook.execute_for, hook.device_filter, hook.repeat_interval) == ("All", "Desktop", "One time")
    assert (hook.delay_seconds, hook.action_style) == (3723, "Popup")
    assert hook.extra is None


@pytest.mark.parametrize(
    ("delay", "seconds", "is_read"),
    [
        ({"hours": "", "minutes": "0", "seconds": 5}, 5, True),
        ({"hours": "", "minutes": "", "seconds": ""}, None, True),
        ([], None, True),
        ("0", 0, True),
        ("90", None, False),
        ({"days": 1}, None, False),
        ({"seconds": "soon"}, None, False),
    ],
)
def test_delay_is_a_number_of_seconds_or_set_aside_alone(
    delay: Any, seconds: int | None, is_read: bool
) -> None:
    (rows,) = read(webhooks.LISTS, {"webhooks": {"items": [{"id": 1, "action_rules": {"delay": delay}}]}})
    (hook,) = rows.records
    assert isinstance(hook, Webhook)
    assert (hook.delay_seconds, hook.extra, rows.rejected) == (seconds, None, [])
    assert rows.flawed == (
        []
        if is_read
        else [Unread({"id": 1, "delay_seconds": {"delay": delay}}, "delay_seconds: not a number")]
    )


def test_style_is_read_in_both_spellings() -> None:
    (hook,) = records(
        Webhook, webhooks.LISTS, {"webhooks": {"items": [{"id": 1, "action_style": "Sticky bar"}]}}
    )
    assert hook.action_style == "Sticky bar"
