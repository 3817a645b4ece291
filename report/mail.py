"""Makes the report after publishing, mails it at most once a night or week, and posts unusual days
and schema changes. Not here: texts (`figures`)."""

import datetime as dt
import hashlib
import logging
import os
import smtplib
import ssl
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from pathlib import Path
from zoneinfo import ZoneInfo

from home.alerts import try_to_post
from home.formatting import count_of, cut_text, format_day
from home.settings import Settings
from home.values import WEEKDAYS, MailServer
from marketing_api.address import mask_addresses
from marketing_api.clock import utc_now
from marketing_api.redaction import Redactor, plain
from report.queries import ReportData, drop_personal
from report.render import (
    drop_unreadable,
    load_environment,
    render_preview,
    render_report,
    write_report,
)
from warehouse.disk import create_file
from warehouse.publish import published_path, schema_changes

log = logging.getLogger(__name__)

#: The time-out of a step of the conversation with the mail server.
_STEP_S = 20.0
#: The prefix of the empty file whose name has the night of a mail.
_MARK = "mailed-"
#: The age up to which an unusual day or a schema change is news.
_RECENT = dt.timedelta(days=3)
#: Errors by which the server refuses the mail. After other errors it may have accepted it.
_REFUSED = (
    smtplib.SMTPResponseException,
    smtplib.SMTPRecipientsRefused,
    smtplib.SMTPNotSupportedError,
)


class Reports:
    """`mailed` is the outcome of the newest report's mail, empty when none was due; `is_lost` is
    whether it failed."""

    def __init__(self) -> None:
        self.mailed = ""
        self.is_lost = False

    def make_report(self, settings: Settings) -> tuple[Path, str, str]:
        """The report's path, a preview in Markdown, and `mailed`. Raises NothingPublished."""
        path, report = write_report(settings.home, settings.accounts)
        if settings.alert_url:
            _post_unusual_days(settings, report, path.parent)
            _post_schema_changes(settings, path.parent)
        try:
            if settings.mail_url:
                self.mailed = _send_report(settings, settings.mail_url, report, path.parent)
        except Exception as error:  # the report is made, whatever fails here
            reason = _describe_failure(settings.mail_url, settings.mail_to, error)
            self.mailed = f"the report was not mailed: {reason}"
            self.is_lost = True
            log.warning("%s", self.mailed)
        return path, render_preview(report), self.mailed


def _post_unusual_days(settings: Settings, report: ReportData, folder: Path) -> None:
    """Post the anomalies of the last days."""
    found = [
        (row["day_on"], f"{account.name}\0{row['figure']}", f"{account.name}: {row['sentence']}")
        for account in report.accounts
        for row in account.rows["anomalies"]
        if account.today - row["day_on"] <= _RECENT
    ]
    oldest = (
        min((account.today for account in report.accounts), default=dt.date.min + _RECENT) - _RECENT
    )
    _post_once(settings, folder, "unusual days", found, oldest)


def _post_schema_changes(settings: Settings, folder: Path) -> None:
    """Post how the service's responses changed in the last days."""
    oldest = utc_now().date() - _RECENT
    changes = schema_changes(published_path(settings.home), oldest)
    found = [(at.date(), line, f"account {account}, {line}") for account, at, line in changes]
    _post_once(settings, folder, "schema changes", found, oldest)


def _post_once(
    settings: Settings,
    folder: Path,
    title: str,
    found: Sequence[tuple[dt.date, str, str]],
    oldest: dt.date,
) -> None:
    """Post the new ones of (day, key, sentence) to the alert address, in one message. Marks are set
    before, as for mails."""
    prefix = {"unusual days": "unusual-", "schema changes": "changed-"}[title]
    new: dict[Path, str] = {}
    for day_on, key, sentence in found:
        digest = hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
        mark = folder / f"{prefix}{day_on}-{digest}"
        if _is_first(mark):
            new[mark] = sentence
    text = "\n".join([f"marketing-sync: {title}", *new.values()])
    if new and not try_to_post(settings, {"text": text}):
        for mark in new:
            mark.unlink(missing_ok=True)
    for mark in folder.glob(f"{prefix}*"):
        if mark.name < f"{prefix}{oldest}":
            mark.unlink(missing_ok=True)


def _is_first(mark: Path) -> bool:
    """Set the mark; False when it is set already, perhaps by another process."""
    try:
        os.close(create_file(mark))
    except FileExistsError:
        return False
    return True


def _send_report(settings: Settings, server: MailServer, report: ReportData, folder: Path) -> str:
    """Send the report if a mail is due; returns the outcome. The mark is set before sending, so
    that a killed process sends nothing rather than the same mail twice."""
    before = sorted(folder.glob(f"{_MARK}*"))
    period = _find_period(settings, report)
    mark = folder / f"{_MARK}{period}"
    is_sending = False
    # a later mark is from a clock that was ahead
    last = f"{_MARK}{utc_now().date() + dt.timedelta(1)}"
    if period is None or any(mark.name <= path.name <= last for path in before):
        return ""
    message = _write_message(settings, drop_personal(report))
    if not _is_first(mark):
        return ""
    try:
        with _open_smtp(server) as connection:
            is_sending = True
            refused = connection.send_message(message)
    except Exception as error:
        if is_sending and not isinstance(error, _REFUSED):
            reason = _describe_failure(server, settings.mail_to, error)
            raise OSError(f"{reason}; it may have arrived, so it is not sent again") from None
        mark.unlink()
        raise
    for older in before:
        older.unlink(missing_ok=True)
    if refused:
        raise smtplib.SMTPRecipientsRefused(refused)
    return f"the report was mailed to {count_of(len(settings.mail_to), 'address', 'addresses')}"


def _find_period(settings: Settings, report: ReportData) -> dt.date | None:
    """The night of the newest data in the schedule's time zone; for weekly mails the last mail day
    up to it. None without data."""
    newest = max((account.as_of for account in report.accounts if account.as_of), default=None)
    night = newest.astimezone(ZoneInfo(settings.schedule_timezone)).date() if newest else None
    if night is None or settings.mail_on not in WEEKDAYS:
        return night
    return night - dt.timedelta((night.weekday() - WEEKDAYS.index(settings.mail_on)) % 7)


@contextmanager
def _open_smtp(server: MailServer) -> Iterator[smtplib.SMTP]:
    trusted = ssl.create_default_context()
    if server.encryption == "tls":
        connection: smtplib.SMTP = smtplib.SMTP_SSL(
            server.host, server.port, timeout=_STEP_S, context=trusted
        )
    else:
        connection = smtplib.SMTP(server.host, server.port, timeout=_STEP_S)
    with closing(connection):
        if server.encryption == "starttls":
            connection.starttls(context=trusted)
        if server.password:
            connection.login(server.user, server.password.reveal())
        yield connection
        with suppress(OSError):  # the server has the mail already
            connection.quit()


def _write_message(settings: Settings, report: ReportData) -> EmailMessage:
    accounts = report.accounts
    message = EmailMessage()
    templates = load_environment()
    subject = count_of(len(accounts), "account")
    if len(accounts) == 1:
        subject = " ".join(plain(accounts[0].title).split())
    newest = max(account.today for account in accounts)
    domain = settings.mail_from.rpartition("@")[2]
    headers = {
        "From": settings.mail_from,
        "To": ", ".join(settings.mail_to),
        "Subject": f"{cut_text(subject, 60)}: marketing report for {format_day(newest)}",
        "Date": format_datetime(utc_now()),
        "Message-ID": make_msgid(domain=domain),
        "Auto-Submitted": "auto-generated",  # no holiday note answers it
    }
    for name, value in headers.items():
        message[name] = value
    text = templates.overlay(autoescape=False).get_template("mail.txt").render(report=report)
    message.set_content(drop_unreadable(text))
    html = templates.get_template("mail.html").render(report=report)
    message.add_alternative(drop_unreadable(html), subtype="html")
    message.add_attachment(render_report(report), subtype="html", filename="report.html")
    return message


def _describe_failure(
    server: MailServer | None, recipients: Sequence[str], error: Exception
) -> str:
    """The error in a line, without the password and addresses."""
    refusals = []
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        refusals = list(error.recipients.values())
    code = getattr(error, "smtp_code", "")
    response = getattr(error, "smtp_error", str(error))
    if refusals:
        addresses = count_of(len(recipients), "address", "addresses")
        code, response = refusals[0]
        code = f"refused for {len(refusals)} of {addresses}: {code}"
    text = response.decode(errors="replace") if isinstance(response, bytes) else response
    line = " ".join(plain(f"{code} {text or type(error).__name__}").split())
    if server and server.password:
        line = Redactor(server.password).redact(line.encode()).decode()
    return mask_addresses(cut_text(line, 300))
