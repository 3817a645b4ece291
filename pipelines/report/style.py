"""What the report looks like: the styles of its elements, and the sheet for the dark, phones and paper. Not here: charts' shapes.

Styles are written into the elements (`html.tag`), so that the page is itself where style sheets are dropped, as in mail. The sheet
only overrides: it needs `!important` for that.
"""

from __future__ import annotations

_INK, _MUTED, _RULE, _SOFT, _PAPER = "#17211f", "#56655f", "#dfe5e2", "#f4f7f6", "#ffffff"
ACCENT, SECOND = "#0f766e", "#a3b1ab"

_NUMBER = "text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"
_FONT = "system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"

#: Name of a look → its declarations.
STYLES: dict[str, str] = {
    "page": f"margin:0;padding:0;background:{_PAPER};color:{_INK};font:400 15px/1.5 {_FONT};-webkit-text-size-adjust:100%",
    "sheet": "box-sizing:border-box;max-width:820px;margin:0 auto;padding:40px 24px 56px;overflow-wrap:break-word",
    "account": "margin:0 0 64px",
    "title": "margin:0;font-size:30px;line-height:1.2;font-weight:700;letter-spacing:-0.02em",
    "heading": f"margin:48px 0 4px;padding:20px 0 0;border-top:1px solid {_RULE};font-size:19px;line-height:1.3;font-weight:650",
    "subheading": "margin:24px 0 6px;font-size:15px;line-height:1.4;font-weight:650",
    "lead": f"margin:0 0 16px;color:{_MUTED}",
    "muted": f"color:{_MUTED}",
    "small": "font-size:13px;line-height:1.45",
    "note": f"margin:12px 0 0;color:{_MUTED};font-size:13px;line-height:1.45",
    "empty": f"margin:12px 0 0;padding:14px 16px;background:{_SOFT};color:{_MUTED};border-radius:6px",
    "warning": f"margin:20px 0 0;padding:12px 16px;background:{_SOFT};border-left:3px solid {ACCENT};border-radius:0 6px 6px 0",
    "jumps": "margin:16px 0 32px;padding:0;list-style:none",
    "jump": "display:inline-block;max-width:100%;margin:0 20px 4px 0;overflow-wrap:anywhere",
    "link": f"color:{ACCENT};text-decoration:underline;text-underline-offset:2px",
    "figures": "margin:28px 0 0;padding:0;font-size:0",
    "figure": "display:inline-block;box-sizing:border-box;width:25%;min-width:148px;padding:0 16px 16px 0;vertical-align:top;"
    "font-size:15px",
    "figure-name": f"margin:0;color:{_MUTED};font-size:13px;line-height:1.4",
    "figure-value": "margin:2px 0 0;font-size:28px;line-height:1.2;font-weight:650;letter-spacing:-0.01em;"
    "font-variant-numeric:tabular-nums",
    "figure-change": f"margin:2px 0 0;color:{_MUTED};font-size:13px;line-height:1.4;font-variant-numeric:tabular-nums",
    "table": "width:100%;border-collapse:collapse;margin:8px 0 0",
    "caption": "padding:12px 0 2px;text-align:left;font-size:14px;line-height:1.4;font-weight:600",
    "head": f"padding:6px 12px 6px 0;border-bottom:1px solid {_RULE};text-align:left;vertical-align:bottom;"
    f"color:{_MUTED};font-size:13px;font-weight:500",
    "row-head": f"padding:9px 12px 9px 0;border-bottom:1px solid {_RULE};text-align:left;vertical-align:top;font-weight:400;"
    "min-width:6em;overflow-wrap:anywhere",
    "cell": f"padding:9px 12px 9px 0;border-bottom:1px solid {_RULE};text-align:left;vertical-align:top",
    "number": _NUMBER,
    "wraps": "white-space:normal",
    "last": "padding-right:0",
    "wide": "",
    "strong": "font-weight:650",
    "given": "overflow-wrap:anywhere",
    "under": f"display:block;color:{_MUTED};font-size:13px;line-height:1.45",
    "charts": "margin:16px 0 0;font-size:0",
    "chart": "display:inline-block;box-sizing:border-box;width:100%;max-width:374px;margin:0 0 12px;padding:0;vertical-align:top;"
    "font-size:15px",
    "wide-chart": "margin:16px 0 12px;padding:0",
    "chart-title": "margin:0 0 8px;font-size:14px;line-height:1.4;font-weight:600",
    "chart-note": f"margin:4px 0 0;color:{_MUTED};font-size:13px;line-height:1.45",
    "left": "margin-right:24px",
    "picture": "display:block;width:100%;height:auto",
    "quotes": "margin:8px 0 0;padding:0;list-style:none",
    "quote": f"margin:0;padding:12px 0;border-bottom:1px solid {_RULE};break-inside:avoid",
    "words": "overflow-wrap:anywhere;margin:4px 0 0;padding:0;white-space:pre-line",
    "foot": f"margin:48px 0 0;padding:16px 0 0;border-top:1px solid {_RULE};color:{_MUTED};font-size:13px;line-height:1.5",
}

#: Colours of charts, by class: also as attributes of the shapes, for where there is no sheet.
CHART_COLOURS = {"accent": ACCENT, "second": SECOND, "rule": _RULE, "axis": _MUTED, "ink": _INK}

_DARK = {
    "ink": "#e6edea",
    "muted": "#9fb0a9",
    "rule": "#2a3532",
    "soft": "#19211f",
    "paper": "#0f1514",
    "accent": "#4cc9b9",
    "second": "#62736d",
}

SHEET = f"""
:root{{color-scheme:light dark}}
a:focus-visible{{outline:2px solid {ACCENT};outline-offset:2px}}
@media screen and (prefers-color-scheme:dark){{
.page{{background:{_DARK["paper"]}!important;color:{_DARK["ink"]}!important}}
.lead,.muted,.note,.figure-name,.figure-change,.head,.under,.chart-note,.foot{{color:{_DARK["muted"]}!important}}
.heading,.head,.row-head,.cell,.quote,.foot{{border-color:{_DARK["rule"]}!important}}
.empty{{background:{_DARK["soft"]}!important;color:{_DARK["muted"]}!important}}
.warning{{background:{_DARK["soft"]}!important;border-color:{_DARK["accent"]}!important}}
.link{{color:{_DARK["accent"]}!important}}
.c-accent{{fill:{_DARK["accent"]}}}.s-accent{{stroke:{_DARK["accent"]}}}
.c-second{{fill:{_DARK["second"]}}}.s-second{{stroke:{_DARK["second"]}}}
.s-rule{{stroke:{_DARK["rule"]}}}.s-axis{{stroke:{_DARK["muted"]}}}
.c-axis{{fill:{_DARK["muted"]}}}.c-ink{{fill:{_DARK["ink"]}}}.c-paper{{fill:{_DARK["paper"]}}}
}}
@media (max-width:600px){{
.sheet{{padding:24px 16px 40px!important}}
.title{{font-size:25px!important}}
.figure{{width:50%!important}}
.wide{{display:none!important}}
.head,.row-head,.cell{{padding-right:8px!important}}
.last{{padding-right:0!important}}
.chart{{max-width:none!important;margin-right:0!important}}
}}
@media print{{
.page{{background:#fff!important;color:#000!important;font-size:10.5pt!important}}
.sheet{{max-width:none!important;padding:0!important}}
.account+.account{{break-before:page}}
.heading,.lead,.subheading,.caption,.head,.chart-title,.charts,.wide-chart{{break-after:avoid}}
.chart,tr,.figure,.figures,.warning{{break-inside:avoid}}
.chart{{width:48%!important;max-width:none!important}}
.jumps{{display:none!important}}
}}
@page{{margin:16mm 14mm}}
""".strip()
