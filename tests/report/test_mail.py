"""A new report is mailed once for its night or week, without personal data; a mail that fails is told and
fails nothing else."""

import dataclasses
import datetime as dt
import logging
import shutil
import socket
from collections.abc import Iterator
from email.message import EmailMessage
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from assets.published import REPORT
from home import values
from home.logs import logging_to_home
from home.settings import Settings, SettingsError, load_settings
from marketing_api.redaction import Secret
from report import mail
from report.mail import Reports
from report.queries import ReportData
from tests.fixtures import Alerts, Command, Night
from tests.pipelines.test_published_run import run_job
from tests.report.mail_server import MailServer, serve_mail
from tests.report.sample_accounts import account, campaign, review
from warehouse.policies import PersonalData
from warehouse.publish import Published

NIGHT = dt.datetime(2026, 3, 20, 2, 30, tzinfo=dt.UTC)  # a Friday
PASSWORD = "unmistakable-password-77a1"
HEADLINE = "“Spring & more”, sent 20 Mar 2026: 41.0 % opened so far, usually 30.0 %."


@pytest.fixture
def server() -> Iterator[MailServer]:
    with serve_mail() as found:
        yield found


@pytest.fixture
def settings(tmp_path: Path, server: MailServer) -> Settings:
    (tmp_path / "report").mkdir()
    to = ("ann@example.com", "bo@example.com")
    return Settings(
        tmp_path,
        mail_url=values.MailServer("127.0.0.1", server.port, "robot", Secret(PASSWORD), "none"),
        mail_from="r@example.com",
        mail_to=to,
    )


def report_of(moment: dt.datetime | None, *accounts: Any) -> ReportData:
    found = accounts or (
        account(
            campaigns=[campaign("Spring & more")],
            business=[{"business_name": "Harbor\r\nBcc: x@y.example", "timezone": "UTC"}],
        ),
    )
    dated = [dataclasses.replace(each, as_of=moment, made_at=moment or NIGHT) for each in found]
    return ReportData(Published(NIGHT, moment, PersonalData.KEEP, 1, 1), dated)


def make(monkeypatch: pytest.MonkeyPatch, settings: Settings, report: ReportData) -> Reports:
    monkeypatch.setattr(mail, "write_report", lambda home, _: (home / "report" / "index.html", report))
    made = Reports()
    assert made.make_report(settings)[2] == made.mailed
    return made


def part(message: EmailMessage, kind: str) -> str:
    found = message.get_body((kind,))
    assert found is not None
    return str(found.get_content()).replace("\r\n", "\n")


def test_it_holds_the_headline_and_the_report(
    settings: Settings, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(monkeypatch, settings, report_of(NIGHT))
    assert (made.mailed, made.is_lost) == ("the report was mailed to 2 addresses", False)
    [(recipients, message)] = server.mails
    assert recipients == ["ann@example.com", "bo@example.com"]
    assert message["Subject"] == "Harbor Bcc: •••: marketing report for 20 Mar 2026"
    assert message["Bcc"] is None
    assert message["Auto-Submitted"] == "auto-generated"
    assert server.logins == [f"\0robot\0{PASSWORD}".encode()]
    text = part(message, "plain")
    assert text.startswith("Harbor")
    assert f"\n\n{HEADLINE}\n" in text, text
    assert "Opened" not in text, "unknown"
    assert "\n\n\n" not in text
    assert HEADLINE.replace("&", "&amp;").replace(" %", "\u00a0%") in part(message, "html")
    [attached] = message.iter_attachments()
    assert (attached.get_filename(), attached.get_content_type()) == ("report.html", "text/html")
    assert "Against usual" in attached.get_content()


def test_it_says_so_when_there_is_nothing_to_report(
    settings: Settings, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(monkeypatch, settings, report_of(NIGHT, account()))
    [(_, message)] = server.mails
    assert "There is nothing to report yet." in part(message, "plain")
    assert "There is nothing to report yet." in part(message, "html")


def test_it_holds_no_personal_data_although_the_copy_does(
    settings: Settings, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = {
        "subject": "contacts",
        "as_of": NIGHT,
        "coverage_rate": 0.4,
        "part_count": 5,
        "read_part_count": 2,
        "is_overdue": True,
    }
    rows = {
        "reviews": [review("Words of Zoe", "Zoe Planted")],
        "freshness": [late | {"rejected_count": 0, "odd_date_count": 0, "reason": "of Zoe Planted"}],
        "campaigns": [campaign("For zoe@planted.example")],
    }
    make(monkeypatch, settings, report_of(NIGHT, account(**rows)))
    raw = server.mails[0][1]
    [attached] = raw.iter_attachments()
    everything = part(raw, "plain") + part(raw, "html") + attached.get_content() + raw["Subject"]
    assert "For •••" in everything
    assert [word for word in ("Zoe", "zoe@", "planted.example") if word in everything] == []
    assert "It contains personal data" not in everything


@pytest.mark.parametrize(
    ("mail_on", "days", "mailed"),
    [
        ("nightly", ["20", "20", "21", "20", "22"], [1, 0, 1, 0, 1]),
        ("friday", ["19", "19", "20", "21", "26", "27"], [1, 0, 1, 0, 0, 1]),
        ("monday", ["16", "18", "22", "24"], [1, 0, 0, 1]),
    ],
)
def test_a_night_or_week_is_mailed_once(
    settings: Settings,
    server: MailServer,
    monkeypatch: pytest.MonkeyPatch,
    mail_on: str,
    days: list[str],
    mailed: list[int],
) -> None:
    chosen = dataclasses.replace(settings, mail_on=mail_on)
    counts = [0]
    for day in days:
        made = make(monkeypatch, chosen, report_of(NIGHT.replace(day=int(day), hour=9)))
        assert bool(made.mailed) is (len(server.mails) > counts[-1])
        counts.append(len(server.mails))
    assert [after - before for before, after in pairwise(counts)] == mailed


def test_a_mail_that_is_dated_in_the_future_holds_up_none(
    settings: Settings, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (settings.home / "report" / "mailed-2099-01-01").touch()
    make(monkeypatch, settings, report_of(NIGHT))
    assert len(server.mails) == 1
    assert [path.name for path in (settings.home / "report").glob("mailed-*")] == [f"mailed-{NIGHT:%Y-%m-%d}"]


def test_the_night_is_of_the_schedule_s_calendar(
    settings: Settings, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    eastern = dataclasses.replace(settings, schedule_timezone="America/New_York")
    for hour, day in ((5, 20), (23, 20), (3, 21), (5, 21)):  # the third is 23:00 of the 20th there
        make(monkeypatch, eastern, report_of(NIGHT.replace(hour=hour, day=day)))
    assert len(server.mails) == 2


def test_nothing_is_mailed_without_a_server_or_data(
    settings: Settings, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not make(monkeypatch, dataclasses.replace(settings, mail_url=None), report_of(NIGHT)).mailed
    assert not make(monkeypatch, settings, report_of(None)).mailed
    assert not make(monkeypatch, settings, ReportData(report_of(NIGHT).published, [])).mailed
    assert server.connections == 0


@pytest.mark.parametrize(
    ("step", "reply", "told", "is_tried_again"),
    [
        ("EHLO", "", "not mailed", True),
        ("AUTH", f"535 no {PASSWORD} for ann@example.com", "535 no *** for •••", True),
        ("MAIL", "550 not from here", "550 not from here", True),
        ("RCPT", "550 nobody of that name", "refused for 2 of 2 addresses: 550 nobody of that name", True),
        ("DATA", "451 later", "451 later", True),
        ("end of data", "554 spam", "554 spam", True),
        ("end of data", "", "it may have arrived, so it is not sent again", False),
        ("TO:<bo@example.com>", "550 gone", "refused for 1 of 2 addresses: 550 gone", False),
    ],
)
def test_what_fails_is_told_and_tried_again_when_it_was_surely_not_taken(
    settings: Settings,
    server: MailServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    step: str,
    reply: str,
    told: str,
    is_tried_again: bool,
) -> None:
    server.says[step] = reply
    with caplog.at_level(logging.WARNING):
        made = make(monkeypatch, settings, report_of(NIGHT))
    assert made.is_lost
    assert told in made.mailed
    assert made.mailed in caplog.text
    assert not [word for word in (PASSWORD, "@example.com") if word in made.mailed]
    server.says.clear()
    before = len(server.mails)
    make(monkeypatch, settings, report_of(NIGHT))
    assert len(server.mails) - before == is_tried_again


def test_a_server_without_tls_gets_no_password(
    settings: Settings, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    encrypted = values.MailServer("127.0.0.1", server.port, "robot", Secret(PASSWORD), "starttls")
    made = make(monkeypatch, dataclasses.replace(settings, mail_url=encrypted), report_of(NIGHT))
    assert "STARTTLS extension not supported" in made.mailed
    assert (server.logins, server.mails) == ([], [])


def test_nobody_listens(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = values.MailServer("127.0.0.1", taken.getsockname()[1], "", Secret(""), "none")
        made = make(monkeypatch, dataclasses.replace(settings, mail_url=nobody), report_of(NIGHT))
    assert "refused" in made.mailed


def test_the_password_is_in_no_log(settings: Settings) -> None:
    with logging_to_home(settings, "test") as file:
        logging.getLogger("x").warning("it is %s", PASSWORD)
        assert "it is ***" in file.path.read_text()


MAIL = {
    "MARKETING_MAIL_URL": "smtp://mail.example",
    "MARKETING_MAIL_FROM": "r@example.com",
    "MARKETING_MAIL_TO": "ann@example.com, bo@example.com",
}


def test_settings_are_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"smtps://robot:{quote(PASSWORD)}@mail.example\n")
    others = {name: value for name, value in MAIL.items() if name != "MARKETING_MAIL_URL"}
    found = load_settings(tmp_path, others | {"MARKETING_MAIL_URL_FILE": str(tmp_path / "secret")})
    assert found.mail_to == ("ann@example.com", "bo@example.com")
    assert found.mail_url == values.MailServer("mail.example", 465, "robot", Secret(PASSWORD), "tls")
    assert PASSWORD not in repr(found)


@pytest.mark.parametrize(
    ("text", "port", "encryption"),
    [
        ("smtp://mail.example", 587, "starttls"),
        ("smtps://a%40b:c%3Ad@mail.example:2465", 2465, "tls"),
        ("smtp://localhost", 25, "none"),
    ],
)
def test_only_a_server_of_this_machine_is_unencrypted(text: str, port: int, encryption: str) -> None:
    found = values.mail_server(text)
    assert (found.port, found.encryption) == (port, encryption)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"MARKETING_MAIL_TO": ""}, "without MARKETING_MAIL_TO: set all"),
        ({"MARKETING_MAIL_TO": "ann"}, "mail addresses are needed"),
        ({"MARKETING_MAIL_FROM": "a@x.example,b@x.example"}, "a mail address is needed"),
        ({"MARKETING_MAIL_FROM": "a@x.example\nBcc: b@x.example"}, "a mail address is needed"),
        ({"MARKETING_MAIL_ON": "someday"}, "nightly, monday, .* or sunday is needed"),
        ({"MARKETING_MAIL_URL": "mail.example"}, "smtps://USER:PASSWORD@HOST"),
        ({"MARKETING_MAIL_URL": "smtps://robot@mail.example"}, "smtps://USER:PASSWORD@HOST"),
        ({"MARKETING_MAIL_URL": f"smtps://robot:{quote(PASSWORD)}@mail.example:x"}, "is needed"),
        ({"MARKETING_MAIL_URL": f"https://robot:{quote(PASSWORD)}@mail.example"}, "is needed"),
    ],
)
def test_settings_that_cannot_work_are_said(tmp_path: Path, changed: dict[str, str], why: str) -> None:
    with pytest.raises(SettingsError, match=why) as raised:
        load_settings(tmp_path, MAIL | changed)
    assert PASSWORD not in str(raised.value)


@pytest.mark.slow
def test_publishing_mails_once(
    rough_night: Night, command: Command, home: Path, settings: Settings, server: MailServer
) -> None:
    shutil.copytree(rough_night.home, home)
    named = {"URL": f"smtp://127.0.0.1:{server.port}", "FROM": "r@example.com", "TO": "ann@example.com"}
    environment = {f"MARKETING_MAIL_{name}": value for name, value in named.items()}
    first, again = (command("publish", **environment) for _ in range(2))
    assert (first.code, again.code) == (0, 0), first.err + again.err
    assert "the report was mailed to 1 address" in first.out
    assert "mailed" not in again.out
    [(recipients, message)] = server.mails
    assert recipients == ["ann@example.com"]
    assert "Active contacts" in part(message, "plain")


@pytest.mark.filterwarnings("ignore")  # of Dagster's
@pytest.mark.slow
def test_in_dagster_a_mail_that_fails_is_told_by_the_report_s_metadata(
    rough_night: Night, home: Path, settings: Settings, server: MailServer
) -> None:
    shutil.copytree(rough_night.home, home)
    server.says["MAIL"] = "550 not from here"
    result = run_job(dataclasses.replace(settings, home=home), "publish")
    assert result.success
    told = {
        event.asset_key: event.materialization.metadata for event in result.get_asset_materialization_events()
    }
    assert told[REPORT]["mail"].value == "the report was not mailed: 550 not from here"
    server.says.clear()
    assert run_job(dataclasses.replace(settings, home=home), "publish").success
    assert len(server.mails) == 1


def unusual(*days: int, figure: str = "visit_count") -> list[dict[str, Any]]:
    return [
        {"day_on": NIGHT.replace(day=day).date(), "figure": figure, "sentence": f"Visits: 60 on the {day}."}
        for day in days
    ]


def test_unusual_days_are_posted_once_in_one_message(
    settings: Settings, alerts: type[Alerts], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = dataclasses.replace(settings, mail_url=None, alert_url=alerts.url)
    for rows in (
        unusual(19, 18, 10),
        unusual(19, 18, 10),
        unusual(19, 18) + unusual(19, figure="bad_count"),
        [],
    ):
        make(monkeypatch, told, report_of(NIGHT, account(anomalies=rows)))
    first, second = alerts.bodies
    assert (
        first["text"]
        == "marketing-sync: unusual days\nmain: Visits: 60 on the 19.\nmain: Visits: 60 on the 18."
    )
    assert second["text"] == "marketing-sync: unusual days\nmain: Visits: 60 on the 19."


def test_schema_changes_of_the_last_days_are_posted_once_in_one_message(
    settings: Settings, alerts: type[Alerts], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = dataclasses.replace(settings, mail_url=None, alert_url=alerts.url)
    now = dt.datetime.now(dt.UTC)
    changes = [("main", now, "lists: new field colour"), ("main", now, "lists: field missing size")]
    for found in (changes[:1], changes, changes):
        monkeypatch.setattr("report.mail.schema_changes", lambda path, since, found=found: found)
        make(monkeypatch, told, report_of(NIGHT, account(anomalies=[])))
    first, second = alerts.bodies
    assert first["text"] == "marketing-sync: schema changes\naccount main, lists: new field colour"
    assert second["text"] == "marketing-sync: schema changes\naccount main, lists: field missing size"


def test_unusual_days_that_were_refused_are_posted_again(
    settings: Settings, alerts: type[Alerts], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = dataclasses.replace(settings, mail_url=None, alert_url=alerts.url)
    monkeypatch.setattr(alerts, "status", 500)
    make(monkeypatch, told, report_of(NIGHT, account(anomalies=unusual(19))))
    monkeypatch.setattr(alerts, "status", 204)
    for _ in range(2):
        make(monkeypatch, told, report_of(NIGHT, account(anomalies=unusual(19))))
    assert len(alerts.bodies) == 2


def test_marks_of_days_that_no_account_can_post_again_are_removed(
    settings: Settings, alerts: type[Alerts], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = dataclasses.replace(settings, mail_url=None, alert_url=alerts.url)
    make(monkeypatch, told, report_of(NIGHT, account(anomalies=unusual(17, 18, 19))))
    for days, left in ((0, [17, 18, 19]), (1, [18, 19]), (9, [])):
        accounts = [
            dataclasses.replace(account(), today=NIGHT.date() + dt.timedelta(days=later))
            for later in (days, 30)
        ]
        make(monkeypatch, told, report_of(NIGHT, *accounts))
        marks = sorted(path.name.rpartition("-")[0] for path in (settings.home / "report").iterdir())
        assert marks == [f"unusual-2026-03-{day}" for day in left]


def test_without_an_alert_address_nothing_is_noted(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(
        monkeypatch,
        dataclasses.replace(settings, mail_url=None),
        report_of(NIGHT, account(anomalies=unusual(19))),
    )
    assert list((settings.home / "report").iterdir()) == []
