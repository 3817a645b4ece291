"""The alert address (MARKETING_ALERT_URL), told what needs a person. Not here: in which words
(`sensors`, `push_report`, `mail`)."""

import logging
from collections.abc import Mapping

from home.settings import Settings

log = logging.getLogger(__name__)

_MAX_TEXT = 2000


def post_alert(settings: Settings, body: Mapping[str, object]) -> None:
    """Post the body as JSON; its `text` is what chat services show. Raises
    requests.RequestException."""
    import requests  # and what it needs: most commands do without

    requests.post(
        settings.alert_url, json={**body, "text": str(body["text"])[:_MAX_TEXT]}, timeout=10
    ).raise_for_status()


def try_to_post(settings: Settings, body: Mapping[str, object]) -> bool:
    """The same, if it may have arrived, for what must not fail by it: a warning does not hold the
    address, since that is a secret."""
    try:
        post_alert(settings, body)
        return True
    except (
        OSError,
        ValueError,
        # requests' own are OSErrors; those of an address that is none are ValueErrors, too
    ) as error:
        status = getattr(getattr(error, "response", None), "status_code", None)
        why = f"HTTP {status}" if status else type(error).__name__
        log.warning(
            "the alert could not be posted to MARKETING_ALERT_URL (%s): see that the address is "
            "right",
            why,
        )
        return type(error).__name__ == "ReadTimeout"
