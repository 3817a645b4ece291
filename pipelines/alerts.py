"""The alert address (MARKETING_ALERT_URL), which is told what needs a person. Not here: in which words (`sensors`, `push_report`)."""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.settings import Settings
from warehouse.archive.disk import create

if TYPE_CHECKING:
    from pipelines.report.queries import AccountData

log = logging.getLogger(__name__)

_MAX_TEXT = 2000
#: What the files are called that note which unusual days were posted, and how old these may be.
_MARK, _RECENT = "unusual-", dt.timedelta(days=3)


def post(settings: Settings, body: Mapping[str, object]) -> None:
    """Post the body as JSON; its `text` is what chat services show. Raises requests.RequestException."""
    import requests  # and what it needs: most commands do without

    requests.post(settings.alert_url, json={**body, "text": str(body["text"])[:_MAX_TEXT]}, timeout=10).raise_for_status()


def try_to_post(settings: Settings, body: Mapping[str, object]) -> bool:
    """The same for what must not fail by it: a warning then, which does not hold the address, since that is a secret. Whether it may
    have arrived.
    """
    try:
        post(settings, body)
        return True
    except (OSError, ValueError) as problem:  # requests' own are OSErrors; those of an address that is none are ValueErrors, too
        status = getattr(getattr(problem, "response", None), "status_code", None)
        why = f"HTTP {status}" if status else type(problem).__name__
        log.warning("the alert could not be posted to MARKETING_ALERT_URL (%s): see that the address is right", why)
        return type(problem).__name__ == "ReadTimeout"


def post_unusual_days(settings: Settings, accounts: Iterable[AccountData], folder: Path) -> None:
    """Post the anomalies of the last days, each once, all in one message. The marks in `folder` are set before, as of mails: a process
    that is killed meanwhile rather posts nothing than the same twice.
    """
    new: dict[Path, str] = {}
    for account in accounts:
        for row in account.rows["anomalies"] if settings.alert_url else ():
            if account.today - row["day_on"] <= _RECENT:
                which = hashlib.blake2b(f"{account.name}\0{row['figure']}".encode(), digest_size=8).hexdigest()
                with suppress(FileExistsError):
                    os.close(create(mark := folder / f"{_MARK}{row['day_on']}-{which}"))
                    new[mark] = f"{account.name}: {row['sentence']}"
    if new and not try_to_post(settings, {"text": "marketing-sync: unusual days\n" + "\n".join(new.values()), "unusual": [*new.values()]}):
        for mark in new:
            mark.unlink(missing_ok=True)
