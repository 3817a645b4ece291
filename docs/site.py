"""What `mkdocs.yml` makes of the repository: the pages of its root join those of `docs/`, and links still
lead there."""

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # mkdocs has an environment of its own

import marketing_api  # noqa: E402

_ROOT_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def on_config(config: Any) -> None:
    """The version is the package's."""
    config.site_name += f" {marketing_api.__version__}"


def on_files(files: Files, config: Any) -> None:
    """The pages of the root stand beside those of `docs/`."""
    for name in _ROOT_PAGES:
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text.replace("](docs/", "](")))


def on_page_markdown(markdown: str, **_: object) -> str:
    """Links to the root lead to its pages; a list may follow a line of text, as on GitHub."""
    markdown = re.sub(r"\]\(\.\./((?:\.\./)*[A-Z]+\.md)", r"](\1", markdown)
    return re.sub(r"^((?![-|>#\s]).+| +```)\n(?=- )", r"\1\n\n", markdown, flags=re.MULTILINE)
