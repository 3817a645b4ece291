"""Hooks of `mkdocs.yml`: add the pages of the repository's root to those of `docs/`, and keep links
to them working."""

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # mkdocs has its own environment

import marketing_api  # noqa: E402

#: The weight of a page in the search, by the beginning of its path; 1 otherwise. A word in a title
#: weighs a thousand times as much as one in a text, so a page below a thousandth comes after all
#: others.
_WEIGHTS = {
    **dict.fromkeys(("CHANGELOG", "CONTRIBUTING", "SECURITY", "decisions/"), 0.0001),
    **dict.fromkeys(("tutorial", "running", "commands", "connect", "sending-back"), 3),
    "marts": 5,
    "index": 2,
}
_ROOT_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def on_config(config: Any) -> None:
    """Set the version to the package's."""
    config.site_name += f" {marketing_api.__version__}"


def on_files(files: Files, config: Any) -> None:
    """Add the pages of the root to those of `docs/`."""
    for name in _ROOT_PAGES:
        text = (ROOT / name).read_text(encoding="utf-8")
        content = re.sub(r"\]\(((?:\.\./)*)docs/", r"](\1", text)
        files.append(File.generated(config, name, content=content))


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Point links that leave `docs/` to the added pages; let a list follow a line of text, as on
    GitHub."""
    weights = [weight for start, weight in _WEIGHTS.items() if page.url.startswith(start)]
    page.meta["search"] = {"boost": weights[0]} if weights else {}
    markdown = re.sub(r"\]\(\.\./((?:\.\./)*[A-Z]+\.md)", r"](\1", markdown)
    return re.sub(r"^((?![-|>#\s]).+| +```)\n(?=- )", r"\1\n\n", markdown, flags=re.MULTILINE)
