"""Writes the settings table of README.md from their declarations: `python -m pipelines.page`."""

from __future__ import annotations

from pathlib import Path

from pipelines.settings import documented

_README = Path(__file__).parent.parent / "README.md"
_BEGIN, _END = "<!-- settings -->", "<!-- /settings -->"


def settings_table() -> str:
    """One row per optional setting."""
    rows = [f"| `{variable}` | {f'`{default}`' if default else ''} | {doc} |" for variable, default, doc in documented()]
    return "\n".join(["| setting | default | what it is |", "|---|---|---|", *rows])


def with_settings(readme: str) -> str:
    """The text with the table between its marks."""
    before, rest = readme.split(_BEGIN)
    _, after = rest.split(_END)
    return f"{before}{_BEGIN}\n{settings_table()}\n{_END}{after}"


def main() -> None:
    _README.write_text(with_settings(_README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
