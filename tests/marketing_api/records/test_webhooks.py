from __future__ import annotations

from typing import Any

import pytest

from marketing_api.operations import webhooks
from marketing_api.records.fields import Unread
from marketing_api.records.webhooks import Webhook
from tests.marketing_api import samples
from tests.marketing_api.responses import read, records


def test_nested_members_of_a_webhook_become_columns() -> None:
    (hook,) = records(Webhook, webhooks.SHOW, samples.WEBHOOK_DETAIL, id=61)
    assert (hook.webhook_id, hook.domain_id, hook.url_filter, hook.url_link) == (61, 2, "Matches Exactly", "https://corner.example/")
    assert (hook.execute_for, hook.device_filter, hook.repeat_interval) == ("All", "Desktop", "One time")
    assert (hook.delay_seconds, hook.action_style) == (3723, "Popup")
    assert hook.extra is None


@pytest.mark.parametrize(
    ("delay", "seconds", "kept"),
    [
        ({"hours": "", "minutes": "0", "seconds": 5}, 5, None),
        ({"hours": "", "minutes": "", "seconds": ""}, None, None),
        ([], None, None),
        ("0", 0, None),
        ("90", None, "90"),
        ({"days": 1}, None, {"days": 1}),
        ({"seconds": "soon"}, None, {"seconds": "soon"}),
    ],
)
def test_delay_is_a_number_of_seconds_or_set_aside_alone(delay: Any, seconds: int | None, kept: Any) -> None:
    (rows,) = read(webhooks.LISTS, {"webhooks": {"items": [{"id": 1, "action_rules": {"delay": delay}}]}})
    (hook,) = rows.records
    assert isinstance(hook, Webhook)
    assert hook.delay_seconds == seconds
    assert hook.extra == ({"delay": kept} if kept else None)
    reason = "delay_seconds: not hours, minutes and seconds"
    assert rows.rejected == ([Unread({"id": 1, "delay": kept}, reason)] if kept else [])


def test_style_is_read_in_both_spellings() -> None:
    (hook,) = records(Webhook, webhooks.LISTS, {"webhooks": {"items": [{"id": 1, "action_style": "Sticky bar"}]}})
    assert hook.action_style == "Sticky bar"
