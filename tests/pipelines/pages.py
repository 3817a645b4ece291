"""The blocks of the pages: each page's commands and queries run in their order, in a home of its own.

A block is what its language says: `sh`, `console` (a command behind `$ `, and what it prints), `sql` and
`python` run; `text` is what the block before it printed; files (`json`, `toml`, …) are read. There is no
other language."""

import configparser
import contextlib
import csv
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import textwrap
import tomllib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import duckdb
import yaml
from dotenv import dotenv_values

from tests.dialects.server import serve
from tests.fixtures import STANDING, Night
from tests.pipelines.running import run
from tests.pipelines.sandboxes import KEY, Sandbox, move_account
from tests.pipelines.tables import query
from warehouse.publish import published_path

ROOT = Path(__file__).parents[2]
ALL_PAGES = [
    str(page.relative_to(ROOT))
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
    if page.parent.name != "templates"
]

#: Commands that are not run, and why.
NOT_RUN = {
    "marketing-sync restore": "it needs an empty machine: tests of the backup have one",
    "make dev": "it fills .venv from the package registry, as .ci/run has it do",
    "make test": "these tests are what it runs",
    "make check": "these tests are part of it",
    "marketing-sync sandbox --port 8765 "
    "--contacts 150": "a server that stays up; the page's requests go to another one",
    "marketing-sync init": "it asks for the key of a real account",
}
#: Of docs/deployment.md: they need root, Docker, a cluster or a Dagster that runs. tests/test_deploy.py looks
#: at the files that they use.
_ELSEWHERE = (
    "sudo git clone REPOSITORY /opt/marketing-sync && sudo make -C /opt/marketing-sync setup",
    "sudo useradd --system --create-home --home-dir /var/lib/marketing-sync --shell "
    "/usr/sbin/nologin marketing",
    "sudo install -d -m 0750 -g marketing /etc/marketing-sync && sudo install -m 0640 -g marketing KEYFILE "
    "/etc/marketing-sync/api-key",
    "sudo install -m 0640 -g marketing /dev/null /etc/marketing-sync/.env && sudo -e /etc/marketing-sync/.env",
    "sudo cp /opt/marketing-sync/deploy/marketing-sync* /etc/systemd/system/ && sudo systemctl daemon-reload",
    "sudo systemctl enable --now marketing-sync.timer",
    "sudo -u marketing sh -c 'cd /etc/marketing-sync && /opt/marketing-sync/.venv/bin/marketing-sync doctor'",
    '(umask 077; echo "DAGSTER_POSTGRES_PASSWORD=$(openssl rand -hex 24)" > .env)',
    "install -d -m 0700 secrets && install -o 10001 -m 0400 KEYFILE secrets/harbor.key",
    "make image-smoke",
    "make image LOCK=requirements-kubernetes.lock",
    "make sbom",
    "make -C .. image && docker compose up -d --wait",
    "docker compose exec -e MARKETING_SHARD=north code marketing-sync status",
    "kubectl create configmap marketing-sync-accounts --from-file=accounts.toml",
    "kubectl create secret generic marketing-sync-postgresql --from-file=postgresql-password=PASSWORDFILE",
    "sed 's/north/south/g' deploy/shard.yaml | kubectl apply -f - -f deploy/network.yaml",
    "helm upgrade --install marketing-sync dagster/dagster --version 1.13.27 --values deploy/values.yaml",
    "pip install --no-deps --require-hashes -r deploy/requirements.lock && pip install --no-deps dist/*.whl",
    "dagster api grpc --host 0.0.0.0 --port 4000 --module-name marketing_sync.definitions "
    "--location-name marketing-sync",
    'dagster job launch -w /opt/dagster/workspace.yaml -j push_tags --tags \'{"marketing-sync/shard": '
    '"north"}\' -c push.yaml',
)
#: Of the dbt and Dagster examples: tests/examples has tests of them.
_EXAMPLES = (
    "pip install 'dbt-core~=1.11.0' 'dbt-duckdb~=1.11.0'",
    "pip install 'dbt-core~=1.11.0' 'dbt-duckdb~=1.11.0' 'dagster-dbt==0.29.*' 'dagster-webserver==1.13.*'",
    "export MARKETING_HOME=/path/to/home",
    'python write_sources.py "$MARKETING_HOME/published/marketing.duckdb"',
    "dbt build",
    'mkdir -p "$HOME/dagster"',
    'echo "telemetry: {enabled: false}" > "$HOME/dagster/dagster.yaml"',
    'export DAGSTER_HOME="$HOME/dagster" MARKETING_HOME=/path/to/home',
    "/path/to/team/.venv/bin/dagster dev -w /path/to/workspace.yaml",
)
NOT_RUN |= dict.fromkeys(_EXAMPLES, "it needs an environment of its own, and tests/examples run it")
NOT_RUN |= dict.fromkeys(_ELSEWHERE, "it needs root, Docker, a cluster or a Dagster that runs")
#: Programs that a machine may lack: there, what comes before them is run without them.
OTHERS = {"curl", "jq"}
#: What these print was printed when the home was made: a whole night. `.ci/run` runs the first of them as a
#: stranger does.
NIGHTS = ("make sync", "marketing-sync sync")
#: Files that pages speak of, and the blocks that are one.
FILES = {"vip.csv": "email,tag\nann@example.com,vip\n", "data/live/personal.key": f"{'7d' * 32}\n"}
SAVED = {
    ("docs/backup.md", "dotenv"): ".env",
    ("docs/sending-back.md", "toml"): "activations.toml",
}

#: Where nothing goes wrong, some questions of these have no rows: tests/warehouse/marts/test_page.py and
#: test_push_rejected.py have some.
UNEVENTFUL = {"docs/marts.md", "docs/sending-back.md"}

READERS: dict[str, Callable[[str], object]] = {
    "bash": lambda text: subprocess.run(["bash", "-n"], input=text, text=True, check=True),
    "csv": lambda text: list(csv.DictReader(io.StringIO(text), strict=True)),
    "dotenv": lambda text: dotenv_values(stream=io.StringIO(text)),
    "ini": lambda text: configparser.ConfigParser(interpolation=None).read_string(text),
    "json": json.loads,
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
}
RUN = ("console", "python", "sh", "sql")


@dataclass(frozen=True)
class Block:
    page: str
    language: str
    text: str

    def commands(self) -> list[str]:
        """Those of a shell: one a line, unless a quotation goes on."""
        if self.language == "console":
            return re.findall(r"^\$ (.+)", self.text, re.MULTILINE)
        found, rest = [], ""
        for line in self.text.splitlines():
            rest += line
            try:
                words = shlex.split(rest, comments=True)
            except ValueError:  # the quotation is open
                rest += "\n"
                continue
            found += [re.sub(r" +# .*", "", rest)] * bool(words)
            rest = ""
        assert not rest, f"{self.page}: an open quotation in {rest}"
        return found


@dataclass(frozen=True)
class Told:
    """A page that was carried out: what each runnable block printed (None for others), and the home then."""

    outputs: list[tuple[Block, str | None]]
    home: Path

    def printed(self, language: str) -> list[str]:
        return [output or "" for block, output in self.outputs if block.language == language]


def blocks(page: str) -> list[Block]:
    """All of a page: those between fences, and queries within a line."""
    text = (ROOT / page).read_text(encoding="utf-8")
    fenced = re.findall(r"^( *)```([^\n`]*)\n(.*?)^\1```$|`(select [^`]+)`", text, re.MULTILINE | re.DOTALL)
    assert 2 * sum(not query for *_, query in fenced) == len(
        re.findall(r"^\s*[`~]{3}", text, re.MULTILINE)
    ), f"{page}: fences in pairs"
    return [
        Block(page, "sql" if query else language, query or textwrap.dedent(content))
        for _, language, content, query in fenced
    ]


def carry_out(page: str, night: Night, folder: Path) -> Told:
    """Run, read and compare every block of a page. AssertionError names the one that is wrong."""
    home, outputs = folder / "home", list[tuple[Block, str | None]]()
    if any(block.language == "sh" for block in blocks(page)):
        shutil.copytree(night.home, home)
    else:  # its queries only read
        home.mkdir()
        for entry in night.home.iterdir():
            (home / entry.name).symlink_to(entry)
    elsewhere = folder / "elsewhere"  # where `run` runs
    (elsewhere / "data").mkdir(parents=True)
    for name in ("live", "sandbox"):
        (elsewhere / "data" / name).symlink_to(home)
    for name, content in FILES.items():
        (elsewhere / name).write_text(content, encoding="utf-8")
    before: str | None = None
    with serve(STANDING) as url, contextlib.chdir(elsewhere):
        if any(block.language == "sh" for block in blocks(page)):
            move_account(home, url)
        for block in blocks(page):
            if block.language in RUN:
                before = (
                    "".join(printed) if (printed := list(_run(block, home, Sandbox(url), night))) else None
                )
                outputs.append((block, before))
                assert block.language != "console" or shape(re.sub(r"^\$ .+\n", "", block.text)) <= shape(
                    before or ""
                ), (block, before)
            elif block.language == "text":
                assert before is not None, f"{page}: nothing printed {block.text}"
                assert shape(block.text) <= shape(before), (block, before)
            else:
                assert block.language in READERS, (
                    f"{page}: what is a block of {block.language!r}? {block.text}"
                )
                assert READERS[block.language](block.text) != {}, block
                if name := SAVED.get((page, block.language)):
                    Path(name).write_text(block.text, encoding="utf-8")
    return Told(outputs, home)


def _run(block: Block, home: Path, service: Sandbox, night: Night) -> Iterator[str]:
    """What each of its commands printed."""
    if block.language == "sql":
        if "custom" in block.text:  # only the copy has these tables
            with duckdb.connect(str(published_path(home)), read_only=True) as connection:
                found = connection.execute(block.text).fetchall()
        else:
            found = query(home, block.text)
        assert found or block.page in UNEVENTFUL, f"no rows: {block.text}"
        yield "\n".join(" ".join(map(str, row)) for row in found)
    elif block.language == "python":
        account = patch.dict(os.environ, MARKETING_API_URL=service.url, MARKETING_API_KEY=KEY)
        with contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings(), account:
            warnings.simplefilter("ignore")  # those of DuckDB and pandas about each other
            exec(compile(block.text, block.page, "exec"), {})
        yield out.getvalue()
    else:
        for line in block.commands():
            if line in NIGHTS:
                yield night.ran.text
            elif line not in NOT_RUN:
                yield _run_line(line.replace("http://127.0.0.1:8765/1", service.url), home, service)


def _run_line(line: str, home: Path, service: Sandbox) -> str:
    """A command of ours, and what a shell does with its output; or one of the shell's."""
    ours, _, rest = line.partition(" | ") if "marketing-sync " in line else ("", "", line)
    text = out = ""
    if ours:
        before, _, words = ours.partition("marketing-sync ")
        settings = dict(word.split("=", 1) for word in before.split())
        ran = run(home, service, *shlex.split(words), **settings)
        assert ran.code == 0, (line, ran.text)
        out, text = ran.out, ran.text
    if rest and (rest.split()[0] not in OTHERS or shutil.which(rest.split()[0])):
        shell = subprocess.run(["bash", "-euc", rest], input=out, capture_output=True, text=True, check=False)
        assert shell.returncode == 0, (line, shell.stderr)
        text = shell.stdout
    return text


def shape(text: str) -> set[str]:
    """Its lines, whatever numbers and people stand in them: the account differs from day to day."""
    text = re.sub(r"^│.*\d.*", "│", text, flags=re.MULTILINE)  # a row of a table
    text = re.sub(r"[─]+", "─", re.sub(r"\d[\d,.:]*", "0", re.sub(r"[^\s@]+@[^\s@]+", "someone", text)))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return {re.sub(r" --sql.*| \(examples.*|about .* at|(?<=published: ).*", "", line) for line in lines} - {
        "…",
        "",
    }
