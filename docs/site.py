"""What `mkdocs.yml` makes of the repository: the pages of its root join those of
`docs/`, and links still lead there."""

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # mkdocs has an environment of its own

import marketing_api  # noqa: E402

#: How much a hit on a page counts in the search, by the beginning of its path; 1 otherwise. A word
#: in a title counts a thousand times one in a text, so less than a thousandth puts a page behind
#: all others.
_WEIGHTS = {
    **dict.fromkeys(("CHANGELOG", "CONTRIBUTING", "SECURITY", "decisions/"), 0.0001),
    **dict.fromkeys(("tutorial", "running", "commands", "connect", "sending-back"), 3),
    "marts": 5,
    "index": 2,
}
_ROOT_PAGES = (*("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),)


def on_config(config: Any) -> None:
    """The version is the package's."""
    config.site_name += f" {marketing_api.__version__}"


def on_files(files: Files, config: Any) -> None:
    """Add the pages of the root to those of `docs/`."""
    for name in _ROOT_PAGES:
        text = (ROOT / name).read_text(encoding="utf-8")
        content = re.sub(r"\]\(((?:\.\./)*)docs/", r"](\1", text)
        files.append(File.generated(config, name, content=content))


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Links out of `docs/` lead to the added pages; a list may follow a line of text, as on
    GitHub."""
    weights = [weight for start, weight in _WEIGHTS.items() if page.url.startswith(start)]
    page.meta["search"] = {"boost": weights[0]} if weights else {}
    markdown = re.sub(r"\]\(\.\./((?:\.\./)*[A-Z]+\.md)", r"](\1", markdown)
    return re.sub(r"^((?![-|>#\s]).+| +```)\n(?=- )", r"\1\n\n", markdown, flags=re.MULTILINE)
