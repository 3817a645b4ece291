"""The report's layout: labels and axes have room, and paper breaks where it should."""

import datetime as dt
from pathlib import Path

import pytest

from home import formatting
from report import charts
from tests.pipelines.browser import CHROMIUM, browser
from tests.report.sample_accounts import FULL, TODAY, account, campaign, page


def test_labels_leave_room_for_the_value_and_axes_for_their_numbers() -> None:
    drawn = charts.draw_bars(
        "Opened",
        [charts.Bar("W" * 90, 50, "41.0 %"), charts.Bar("Spring menu", 40, "40.0 %")],
        axis=formatting.format_number,
    )
    assert f">{'W' * 23}…</text>" in drawn
    assert ">Spring menu<" in drawn
    few, many = (
        charts.draw_lines(
            "Contacts",
            [charts.Series("all", [(TODAY - dt.timedelta(days=1), size), (TODAY, size * 2)])],
            format_value=formatting.format_number,
        )
        for size in (10, 10_000_000)
    )
    assert 'x1="44"' in few
    assert 'x1="76"' in many


def test_paper_keeps_headings_with_what_they_head_and_ends_with_the_text() -> None:
    sheet = page(account("harbor", **FULL), account("pier")).split("@media print")[1]
    assert ".account+.account{break-before:page}" in sheet
    assert ".lead" in sheet.split("{break-after:avoid}")[0]
    assert ".sort{display:contents}" in sheet, "Chromium does not repeat buttons in headings"


@pytest.mark.skipif(not CHROMIUM, reason="needs Chromium")
def test_a_click_sorts_months_by_date_and_names_by_letter(tmp_path: Path) -> None:
    months = [
        FULL["months"][0] | {"begins_on": dt.date(2026, month, 1), "is_over": month < 5}
        for month in (5, 4, 3)
    ]
    campaigns = [
        campaign(f"{letter} in {month} 2025")
        for letter, month in (("B", "May"), ("C", "April"), ("A", "June"))
    ]
    (tmp_path / "page.html").write_text(page(account(**FULL | {"months": months, "campaigns": campaigns})))
    with browser(tmp_path / "profile") as tab:
        tab.open((tmp_path / "page.html").as_uri())
        names = (
            "(table => { for (const _ of 'up') table.tHead.querySelector('button').click();"
            "return [...table.tBodies[0].rows].map(row => row.innerText[0]).join('') })"
        )
        for table, expected in (("Months", "MAM"), ("Campaigns", "ABC")):
            assert tab.run(f"{names}(document.querySelector('[data-name={table}]'))") == expected
