"""The pages say what is true: generated ones are not stale, commands parse, links lead somewhere."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from docs.generate import PAGES, expected_types, sandbox
from marketing_api.operations import ALL
from marketing_api.records.reputation import SentimentTotals
from marketing_api.redaction import Secret
from marketing_api.sandbox.faults import FAULTS
from marketing_sync.cli import COMMANDS as COMMANDS_OF_PROGRAM
from tests.pipelines.pages import ALL_PAGES, FILES, NOT_RUN, RUN, Told, blocks
from tests.pipelines.running import parsed
from tests.warehouse.test_masking import hashed

ROOT = Path(__file__).parents[2]
#: Those within lines. CHANGELOG.md may name what is no more; the name of a group alone is no command.
COMMANDS = {
    command
    for page in ALL_PAGES
    for command in re.findall(r"`(marketing-sync [^`]+)`", (ROOT / page).read_text(encoding="utf-8"))
    if page != "CHANGELOG.md" and command not in ("marketing-sync push", "marketing-sync call")
}
#: What stands for a name in them.
NAMED = {"TABLE": "lists", "OPERATION": "app/me", "KIND": "tags"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_generated_pages_are_not_stale(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == PAGES[page](), "run `make docs`"


def test_the_sandbox_page_names_every_fault() -> None:
    text = sandbox()
    assert all(f"`{name}`" in text for name in FAULTS)


def test_the_page_of_responses_names_every_member_that_is_read() -> None:
    """The members that a column is read from under another name than its own."""
    named = {member.name.lower() for members in expected_types().values() for member in members}
    fields = [
        (record.__name__, name, info.validation_alias.choices)  # type: ignore[union-attr]
        for operation in ALL.values()
        for record in operation.records
        for name, info in record.model_fields.items()
        if info.validation_alias is not None and record is not SentimentTotals
    ]
    assert fields
    for record, name, choices in fields:
        wire = {name, *(str(choice).lower() for choice in choices)}
        assert wire & named, f"{record}.{name}: none of {wire}"


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_of_a_page_parses(command: str) -> None:
    words = [NAMED.get(word, word) for word in shlex.split(command)[1:]]
    assert parsed(words).command_path.split()[1] == words[0]


def test_the_page_of_commands_has_every_command() -> None:
    table = re.findall(
        r"^\| (`.+?) \|", (ROOT / "docs/commands.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert set(re.findall(r"`(?:marketing-sync )?([a-z]+)", " ".join(table))) == set(COMMANDS_OF_PROGRAM)


@pytest.mark.parametrize("page", ALL_PAGES)
def test_columns_of_tables_have_headings(page: str) -> None:
    """And nobody who reads the page is shown which file it is made from."""
    text = (ROOT / page).read_text(encoding="utf-8")
    heads = re.findall(r"^\|(.*)\|\n\|[-| :]+\|$", text, re.MULTILINE)
    assert [head for head in heads if not all(map(str.strip, head.split("|")))] == []
    assert "\nWritten by `make docs`" not in text


def test_every_question_has_one_short_query() -> None:
    page = (ROOT / "docs/questions.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^### .+\n\n```sql$", page, re.MULTILINE)) == page.count("\n### ") == 37
    queries = blocks("docs/questions.md")
    assert max(block.text.count("\n") for block in queries if block.language == "sql") <= 6


@pytest.mark.parametrize("page", ALL_PAGES)
def test_what_a_page_makes_can_be_made(page: str) -> None:
    made = re.findall(r"(?:`|^)make ([a-z]+)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(made) <= set(targets)


@pytest.mark.parametrize("page", ALL_PAGES)
def test_links_lead_to_files(page: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text(encoding="utf-8"))
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


@pytest.mark.parametrize(
    "page", ["docs/architecture.md", "docs/glossary.md", "CONTRIBUTING.md", "SECURITY.md"]
)
def test_files_that_a_page_names_exist(page: str) -> None:
    """Paths in backticks, from one of the packages on; `AREA`, `NAME` and `…` stand for names."""
    named = re.findall(
        r"`((?:marketing_api|warehouse|assets|pipelines|docs|tests)/[\w./]+)`",
        (ROOT / page).read_text(encoding="utf-8"),
    )
    assert [path for path in named if not re.search("AREA|NAME", path) and not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", [page for page in ALL_PAGES if blocks(page)])
@pytest.mark.slow
def test_every_block_of_a_page_is_carried_out(page: str, told: Callable[[str], Told]) -> None:
    told(page)


@pytest.mark.slow
def test_the_hash_of_the_page_is_the_one_in_the_file(told: Callable[[str], Told]) -> None:
    (printed,) = told("docs/personal-data.md").printed("python")
    assert printed == hashed("Ann@example.com", Secret(FILES["data/live/personal.key"].strip())) + "\n"


@pytest.mark.slow
def test_no_block_is_left_out(told: Callable[[str], Told], capsys: pytest.CaptureFixture[str]) -> None:
    found = [block for page in ALL_PAGES for block in blocks(page)]
    outputs = [output for page in ALL_PAGES if blocks(page) for output in told(page).outputs]
    assert [block for block, _ in outputs] == [block for block in found if block.language in RUN]
    commands = {line for block in found if block.language == "sh" for line in block.commands()}
    assert set(NOT_RUN) <= commands, "declared, and on no page"
    ran = sum(output is not None for _, output in outputs)
    assert ran == len(outputs) - sum(
        block.language == "sh" and set(block.commands()) <= set(NOT_RUN) for block, _ in outputs
    )
    with capsys.disabled():
        print(
            f"\n{ran} of {len(outputs)} blocks run, {len(found) - len(outputs)} read or compared; not run: "
            f"{', '.join(NOT_RUN)}"
        )
