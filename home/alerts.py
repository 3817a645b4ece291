"""Posts alerts to the alert address (MARKETING_ALERT_URL). Not here: their words (`sensors`,
`push_report`, `mail`)."""

import logging
from collections.abc import Mapping

from home.exits import Incomplete
from home.settings import Settings

log = logging.getLogger(__name__)

_MAX_TEXT = 2000


class NotPosted(Incomplete):
    """`may_have_arrived`: only the response is missing."""

    may_have_arrived = False


def post_alert(settings: Settings, body: Mapping[str, object]) -> None:
    """Post the body as JSON; chat services display its `text`. Raises NotPosted, without the
    address, which is a secret."""
    import requests  # most commands don't need it and its dependencies

    try:
        requests.post(
            settings.alert_url, json={**body, "text": str(body["text"])[:_MAX_TEXT]}, timeout=10
        ).raise_for_status()
    # the library's errors are OSErrors; a malformed address raises ValueError, too
    except (OSError, ValueError) as error:
        status = getattr(getattr(error, "response", None), "status_code", None)
        why = f"HTTP {status}" if status else type(error).__name__
        failure = NotPosted(
            f"the alert could not be posted to MARKETING_ALERT_URL ({why}): check the address"
        )
        failure.may_have_arrived = isinstance(error, requests.ReadTimeout)
        raise failure from None


def try_to_post(settings: Settings, body: Mapping[str, object]) -> bool:
    """The same, for callers that must not fail because of it; returns whether it may have
    arrived."""
    try:
        post_alert(settings, body)
    except NotPosted as error:
        log.warning("%s", error)
        return error.may_have_arrived
    return True
