"""The building blocks of sections: headings, tables, figures, notes for what is not there. Not here: any data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.report.html import Child, Html, tag


@dataclass(frozen=True, slots=True)
class Heading:
    """One column of a table; `is_wide` ones are left out on phones."""

    name: str
    is_number: bool = True
    is_wide: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """One large number: its name, the number as shown, and a line below."""

    name: str
    value: str
    below: str = ""


def section(anchor: str, title: str, lead: str, *content: Child) -> Html:
    """A part of the page under a heading; `lead` says in a line what it tells."""
    heading = tag("h2", title, look="heading", id=anchor)
    return tag("section", heading, tag("p", lead, look="lead") if lead else None, *content)


def subheading(title: str) -> Html:
    return tag("h3", title, look="subheading")


def empty(*words: Child) -> Html:
    """In place of what an account has not got."""
    return tag("p", *words, look="empty")


def note(*words: Child, is_wide: bool = False) -> Html:
    """Something to know about what stands above; a wide one is about what phones leave out."""
    return tag("p", *words, look="note wide" if is_wide else "note")


def charts(*pictures: Html | None) -> Html:
    """Side by side where there is room."""
    shown = [picture for picture in pictures if picture]
    gap = Html('<span style="display:inline-block;width:24px"></span>')
    return tag("div", *[part for picture in shown for part in (picture, gap)][:-1], look="charts")


def figures(*items: Figure) -> Html:
    """The most important numbers, first thing on the page."""
    return tag(
        "div",
        *(
            tag(
                "div",
                tag("p", item.name, look="figure-name"),
                tag("p", item.value, look="figure-value"),
                tag("p", item.below, look="figure-change") if item.below else None,
                look="figure",
            )
            for item in items
        ),
        look="figures",
    )


def table(headings: Sequence[Heading], rows: Sequence[Sequence[Child]], *, caption: str = "") -> Html:
    """The first cell of each row is its heading. It needs a `caption` where the section's heading does not say what it is."""
    head = tag("tr", *(tag("th", heading.name, look=f"{_look('head', heading, headings)} wraps", scope="col") for heading in headings))
    body = (tag("tr", *(_cell(cell, heading, headings) for cell, heading in zip(row, headings, strict=True))) for row in rows)
    above = tag("caption", caption, look="caption") if caption else None
    return tag("table", above, tag("thead", head), tag("tbody", *body), look="table")


def named(name: Child, under: str = "") -> Child:
    """A name of the service's, set apart from what is around it, and a quieter line below."""
    return [tag("bdi", name, look="given"), tag("span", under, look="under") if under else None]


def _cell(cell: Child, heading: Heading, headings: Sequence[Heading]) -> Html:
    if heading is headings[0]:
        return tag("th", cell, look=_look("row-head", heading, headings), scope="row")
    return tag("td", cell, look=_look("cell", heading, headings))


def _look(look: str, heading: Heading, headings: Sequence[Heading]) -> str:
    last = "last" if heading is headings[-1] else ""
    return " ".join(filter(None, (look, "number" if heading.is_number else "", last, "wide" if heading.is_wide else "")))
