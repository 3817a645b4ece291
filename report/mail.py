"""The report behind each publishing: made, mailed at most once a night or week; unusual days are
posted. Not here: texts (`figures`)."""

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

#: How long each step of the conversation may take; what the file is called that notes the night of
#: a mail.
_STEP_S, _MARK = 20.0, "mailed-"
#: How old an unusual day or a schema change may be that is new.
_RECENT = dt.timedelta(days=3)
#: The server said that it does not take the mail; after other errors it may have.
_REFUSED = (
    smtplib.SMTPResponseException,
    smtplib.SMTPRecipientsRefused,
    smtplib.SMTPNotSupportedError,
)


class Reports:
    """`mailed` is what became of the newest report's mail, empty where none was due; `is_lost` when
    something went wrong with it."""

    def __init__(self) -> None:
        self.mailed, self.is_lost = "", False

    def make_report(self, settings: Settings) -> tuple[Path, str, str]:
        """Where the report stands, a preview in Markdown, and `mailed`. Raises NothingPublished."""
        path, report = write_report(settings.home)
        if settings.alert_url:
            _post_unusual_days(settings, report, path.parent)
            _post_schema_changes(settings, path.parent)
        try:
            if settings.mail_url:
                self.mailed = _send_report(settings, settings.mail_url, report, path.parent)
        except Exception as problem:  # whatever it is, the report is made
            reason = _describe_failure(settings.mail_url, settings.mail_to, problem)
            self.mailed, self.is_lost = f"the report was not mailed: {reason}", True
            log.warning("%s", self.mailed)
        return path, render_preview(report), self.mailed


def _post_unusual_days(settings: Settings, report: ReportData, folder: Path) -> None:
    """The anomalies of the last days."""
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
    """How the service's responses differed in the last days from what they were before."""
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
    """Post (day, what tells it apart, sentence) to the alert address, each once, in one message.
    Marks are set before, as of mails."""
    prefix, new = (
        {"unusual days": "unusual-", "schema changes": "changed-"}[title],
        dict[Path, str](),
    )
    for day_on, key, sentence in found:
        mark = (
            folder / f"{prefix}{day_on}-{hashlib.blake2b(key.encode(), digest_size=8).hexdigest()}"
        )
        if _is_first(mark):
            new[mark] = sentence
    if new and not try_to_post(
        settings, {"text": "\n".join([f"marketing-sync: {title}", *new.values()])}
    ):
        for mark in new:
            mark.unlink(missing_ok=True)
    for mark in folder.glob(f"{prefix}*"):
        if mark.name < f"{prefix}{oldest}":
            mark.unlink(missing_ok=True)


def _is_first(mark: Path) -> bool:
    """Sets the mark; False where it is set already, perhaps by another process."""
    try:
        os.close(create_file(mark))
    except FileExistsError:
        return False
    return True


def _send_report(settings: Settings, server: MailServer, report: ReportData, folder: Path) -> str:
    """Send it, where it is due. The mark is set before: a process that is killed meanwhile rather
    sends nothing than the same twice."""
    before, period = sorted(folder.glob(f"{_MARK}*")), _find_period(settings, report)
    mark, is_sending = folder / f"{_MARK}{period}", False
    # a later one is of a clock that was ahead
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
    except Exception as problem:
        if is_sending and not isinstance(problem, _REFUSED):
            why = _describe_failure(server, settings.mail_to, problem)
            raise OSError(f"{why}; it may have arrived, so it is not sent again") from None
        mark.unlink()
        raise
    for older in before:
        older.unlink(missing_ok=True)
    if refused:
        raise smtplib.SMTPRecipientsRefused(refused)
    return f"the report was mailed to {count_of(len(settings.mail_to), 'address', 'addresses')}"


def _find_period(settings: Settings, report: ReportData) -> dt.date | None:
    """The night of the newest data, by the calendar of the schedule; the weekday at or before it
    where mails are weekly."""
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
        with suppress(OSError):  # it has the mail
            connection.quit()


def _write_message(settings: Settings, report: ReportData) -> EmailMessage:
    accounts, message, templates = report.accounts, EmailMessage(), load_environment()
    whose = count_of(len(accounts), "account")
    if len(accounts) == 1:
        whose = " ".join(plain(accounts[0].title).split())
    newest, domain = (
        max(account.today for account in accounts),
        settings.mail_from.rpartition("@")[2],
    )
    headers = {
        "From": settings.mail_from,
        "To": ", ".join(settings.mail_to),
        "Subject": f"{cut_text(whose, 60)}: marketing report for {format_day(newest)}",
        "Date": format_datetime(utc_now()),
        "Message-ID": make_msgid(domain=domain),
        "Auto-Submitted": "auto-generated",  # nobody's holiday note answers it
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
    server: MailServer | None, recipients: Sequence[str], problem: Exception
) -> str:
    """In a line, without the password and addresses, whatever the server says."""
    refusals = (
        list(problem.recipients.values())
        if isinstance(problem, smtplib.SMTPRecipientsRefused)
        else []
    )
    code, said = getattr(problem, "smtp_code", ""), getattr(problem, "smtp_error", str(problem))
    if refusals:
        addresses = count_of(len(recipients), "address", "addresses")
        code, said = refusals[0]
        code = f"refused for {len(refusals)} of {addresses}: {code}"
    words = said.decode(errors="replace") if isinstance(said, bytes) else said
    line = " ".join(plain(f"{code} {words or type(problem).__name__}").split())
    if server and server.password:
        line = Redactor(server.password).redact(line.encode()).decode()
    return mask_addresses(cut_text(line, 300))
