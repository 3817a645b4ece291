"""What `mkdocs.yml` makes of the repository: its own pages join those of `docs/`, README in four parts, and
links still lead there."""

import re
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
#: Sections of README that are pages of their own: the anchor, and the page.
_SECTIONS = {"commands": "commands.md", "configuration": "configuration.md", "operations": "running.md"}
_ROOT_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def on_config(config: Any) -> None:
    """The version is the package's."""
    config.site_name += (
        " " + tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    )


def on_files(files: Files, config: Any) -> None:
    """The pages of the root stand beside those of `docs/`."""
    pages = _readme() | {name: (ROOT / name).read_text(encoding="utf-8") for name in _ROOT_PAGES}
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text.replace("](docs/", "](")))


def on_page_markdown(markdown: str, **_: object) -> str:
    """Links to the root and to README's sections lead to their pages; a list may follow a line of text, as on
    GitHub."""
    markdown = re.sub(r"\]\(\.\./((?:\.\./)*[A-Z]+\.md)", r"](\1", markdown)
    for anchor, page in _SECTIONS.items():
        markdown = re.sub(rf"README\.md(?=#{anchor}\))", page, markdown)
    return re.sub(r"^((?![-|>#\s]).+| +```)\n(?=- )", r"\1\n\n", markdown, flags=re.MULTILINE)


def _readme() -> dict[str, str]:
    """Page → its part of README."""
    text = re.sub(r"\]\(#", "](README.md#", (ROOT / "README.md").read_text(encoding="utf-8"))
    pages = {"README.md": ""}
    for part in re.split(r"^(?=## )", text, flags=re.MULTILINE):
        page = _SECTIONS.get(part.partition("\n")[0].removeprefix("## ").lower(), "README.md")
        pages[page] = pages.get(page, "") + (part if page == "README.md" else part.removeprefix("#"))
    return pages
