"""Models of the user's: dbt builds them behind ours, on a copy of the warehouse, in a process of its own;
what it made comes back as tables in the schema `custom`.

Whatever such a model does costs itself and what depends on it: a file that dbt cannot read is left out, a
model that ends the process or takes too long has failed, and the others go on. Not here: what happens in the
process (`own_build`), what a published column may show (`masking`)."""

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Unpack

import duckdb
import msgspec

from marketing_api.rate_limit import private_folder
from marketing_api.redaction import without_addresses
from warehouse.child import Child, Ended, Silent
from warehouse.connection import Waits, connect
from warehouse.dbt_project import OWN, PROJECT, Node
from warehouse.disk import Workspace, copy_locked, write_file
from warehouse.duckdb_errors import discreet
from warehouse.errors import NoWarehouse, WarehouseError
from warehouse.masking import OWN_COLUMNS, lineage, own_columns
from warehouse.models import BuildReport, ModelSettings, OnNode, Outcome, Status, describe
from warehouse.schema import columns_of, ensure_schema, kinds_of, note_fact
from warehouse.sql import literal, qualified, quoted, rows, transaction, value

#: Name in sync.meta: what is wrong with the models.
PROBLEM = "own_problem"

_TEMPLATES = PROJECT / "templates"
_SKELETON = PROJECT / "own_project"

#: What the project around the user's files finds of ours: as a package, and as its own.
_LINKS = {
    "packages/marketing_sync": PROJECT,
    "ours/macros": PROJECT / "macros",
    "ours/tests": PROJECT / "tests",
}

#: Folders of the user's folder that hold something else than models; dbt's names.
_OTHERS = ("macros", "tests", "snapshots", "seeds")
#: What it has beside them when it is a dbt project itself: where `dbt deps` puts packages, what dbt writes,
#: and files that stand in for ours.
_PACKAGES = "dbt_packages"
_OF_A_PROJECT = {_PACKAGES, "target", "logs"} | {
    f"{name}.yml"
    for name in ("dbt_project", "profiles", "packages", "dependencies", "package-lock", "selectors")
}
_SUFFIXES = (".sql", ".yml", ".yaml", ".md", ".csv", ".py")
#: A file as messages name it.
_PATH = re.compile(r"\w++(?:[./-]++\w++)*+")
#: dbt takes seconds to read the files; who has it compute in them is ended.
_READING_S = 300.0


@dataclass(frozen=True, slots=True)
class OwnSettings:
    """`folder`: where the files are. `seconds`: how long a model may take. `memory`: as DuckDB writes it."""

    folder: Path
    seconds: float = 600.0
    memory: str = "2GB"
    variables: Mapping[str, str] = field(default_factory=lambda: ModelSettings().variables)

    def files(self) -> list[Path]:
        return sorted(
            path
            for path in self.folder.rglob("*")
            if path.suffix in _SUFFIXES
            and path.is_file()
            and path.relative_to(self.folder).parts[0] not in _OF_A_PROJECT
        )

    def packages(self) -> list[Path]:
        """Those that dbt fetched; ours it has."""
        return [path for path in (self.folder / _PACKAGES).glob("*/") if path.name != "marketing_sync"]


class NoSuchModel(WarehouseError):
    """A name of no model in the folder."""


class DbtMissing(WarehouseError):
    """Nobody else needs it, so it is installed for models of one's own alone."""


def what_is_missing() -> str:
    """What to install before models can be built; empty when everything is there."""
    return (
        ""
        if find_spec("dbt")
        else "models of your own need dbt, which is not installed: run `make extras` in the clone, or `pip "
        "install 'marketing-sync[models]'`, with Python up to 3.13, since dbt 1.11 knows no later one"
    )


def new_model(folder: Path, name: str, ours: Iterable[str] = ()) -> list[Path]:
    """Write a model to begin with, and its description. WarehouseError when the name is taken, also by one of
    `ours`, or cannot be one of a table."""
    if not (name.isidentifier() and name.isascii() and name == name.lower()):
        raise WarehouseError(
            f"{name!r} cannot be a table's name: use lower-case letters, digits and `_`, with a letter "
            "first, e.g. vip_contacts"
        )
    if name in ours:
        raise WarehouseError(f"{name} is one of our models: choose another name")
    made = [folder / f"{name}.sql", folder / f"{name}.yml"]
    if taken := [path for path in made if path.exists()]:
        raise WarehouseError(f"{taken[0]} is there already: open it, or choose another name")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for path in made:
        text = (_TEMPLATES / f"own_model{path.suffix}").read_text(encoding="utf-8")
        path.write_text(text.replace("<<name>>", name), encoding="utf-8")
    return made


def build_own(
    path: Path,
    settings: OwnSettings,
    *,
    select: Sequence[str] = (),
    full: bool = False,
    on_node: OnNode | None = None,
    **waits: Unpack[Waits],
) -> BuildReport:
    """Build the models in the folder with dbt, and test them. `select`: these alone, by name. `full`:
    incremental ones begin anew.

    The warehouse is held while it is copied, and while the tables come back. Raises NoSuchModel, DbtMissing,
    and what `connect` raises."""
    if not path.exists():
        raise NoWarehouse(f"there is no {path} yet: run `marketing-sync sync` first")
    if settings.files() and (missing := what_is_missing()):
        raise DbtMissing(missing)
    building = _Building(settings, select, is_full=full)
    with closing(Workspace(path.parent / "tmp" / "own_models")) as workspace:
        workspace.sweep()
        folder, copy = workspace.folder(), workspace.file(path.name)
        if settings.files():
            with connect(path, **waits):
                copy_locked(path, copy)
            with _parsed_before(folder, settings):
                building.run(folder, on_node)
        with connect(path, memory_limit=settings.memory, **waits) as connection:
            ensure_schema(connection)
            return building.adopt(connection, copy)


@contextmanager
def _parsed_before(folder: Path, settings: OwnSettings) -> Iterator[None]:
    """What dbt has read of the project, ours in it: it reads only files that are new since. Not with
    packages: it would find those of another project."""
    if (settings.folder / _PACKAGES).is_dir():
        yield
        return
    kept = private_folder() / "own-project.msgpack"
    parsed = folder / "target" / "partial_parse.msgpack"
    parsed.parent.mkdir(exist_ok=True)
    with suppress(FileNotFoundError):
        shutil.copyfile(kept, parsed)
    yield
    with suppress(FileNotFoundError):
        write_file(kept, parsed.read_bytes())


class _Building:
    """One building: what dbt is given, and what became of it so far."""

    def __init__(self, settings: OwnSettings, select: Sequence[str], *, is_full: bool) -> None:
        self._settings, self._select, self._is_full = settings, select, is_full
        self._files = {_place(path.relative_to(settings.folder)): path for path in settings.files()}
        self._left_out: list[str] = []
        self._outcomes: dict[str, Outcome] = {}  # by dbt's id
        self._models: dict[str, str] = {}  # of what dbt read last: name → relation

    def run(self, folder: Path, on_node: OnNode | None) -> None:
        """Again after each process that did not come to its end, for what is left."""
        is_over = False
        while self._files and not is_over:
            self._lay_out(folder)
            with Child("warehouse.own_build", folder=folder) as child:
                child.send(json.dumps(self._order()))
                is_over = self._listen(child, on_node)

    def _lay_out(self, folder: Path) -> None:
        """The project that dbt reads: the skeleton, ours as a package, the user's files but for those that
        are left out."""
        for name in ("models", *_OTHERS):
            shutil.rmtree(folder / name, ignore_errors=True)
        shutil.copytree(_SKELETON, folder, dirs_exist_ok=True)
        fetched = {f"packages/{package.name}": package.resolve() for package in self._settings.packages()}
        for link, target in (_LINKS | fetched).items():
            (folder / link).parent.mkdir(exist_ok=True)
            if not (folder / link).is_symlink():
                (folder / link).symlink_to(target, target_is_directory=True)
        for place, source in self._files.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / place)

    def _order(self) -> dict[str, object]:
        failed = [each for each, outcome in self._outcomes.items() if outcome.status is Status.FAILED]
        return {
            "names": self._select,
            "is_full": self._is_full,
            "variables": {**self._settings.variables, "own_memory": self._settings.memory},
            "known": list(self._outcomes),
            "failed": failed,
        }

    def _listen(self, child: Child, on_node: OnNode | None) -> bool:
        """Take in what one process says; whether nothing is left to do."""
        running, node, total = "", None, 0
        try:
            while True:
                match json.loads(child.receive(self._settings.seconds if running else _READING_S)):
                    case {"problem": problem, "file": file}:
                        return not self._leave_out(problem, file)
                    case {"total": total, "models": models}:
                        self._models = models
                        self._check_names()
                    case {"begins": running, "node": given}:
                        node = msgspec.convert(given, Node)
                        if on_node:
                            on_node(len(self._outcomes) + 1, total, node.name)
                    case {"ended": running, "outcome": given}:
                        self._outcomes[running], running = msgspec.convert(given, Outcome), ""
                    case _:
                        return True
        except (Silent, Ended) as end:
            return self._interrupted(running, node, is_silent=isinstance(end, Silent))

    def _interrupted(self, running: str, node: Node | None, *, is_silent: bool) -> bool:
        """Note what ended a process; whether nothing is left to do."""
        seconds = self._settings.seconds if node and running else _READING_S
        why = (
            f"took longer than {seconds:g} s and was ended: let it do less, or set MARKETING_MODELS_SECONDS"
            if is_silent
            else "ended its process, as what takes more memory than there is does: let it do less than "
            f"{self._settings.memory}"
        )
        if node and running:
            self._outcomes[running] = Outcome(node, Status.FAILED, message=f"it {why}")
            return False
        if is_silent:
            why = f"took longer than {seconds:g} s to read them"
        self._left_out.append(f"the models in {self._settings.folder} were not built: dbt {why}")
        return True

    def _leave_out(self, problem: str, file: str) -> bool:
        """Take out the file that the problem is about, with the models that a description is about: without
        it, they might lose what they hold. False when it is about none."""
        # some messages name a file without the folder of its kind, some name none
        spelled = {place.partition("/")[2]: place for place in self._files}
        spelled |= {place: place for place in self._files}

        def named(word: re.Match[str]) -> str:
            return str(self._files[spelled[word[0]]]) if word[0] in spelled else word[0]

        said = without_addresses(_PATH.sub(named, " ".join(problem.split())))[:600]
        place = next((spelled[word] for word in (*_PATH.findall(problem), file) if word in spelled), None)
        if place is None:
            self._left_out.append(f"the models in {self._settings.folder} cannot be read: {said}")
            return False
        path = self._files.pop(place)
        self._left_out.append(f"{path} is left out, and what it made before stays: {said}")
        if place.endswith((".yml", ".yaml")):
            words = set(re.findall(r"\w+", path.read_text(encoding="utf-8", errors="replace")))
            for each in [each for each in self._files if Path(each).stem in words]:
                del self._files[each]
        return True

    def _check_names(self) -> None:
        if unknown := [name for name in self._select if name not in self._models and not self._left_out]:
            there = f"there are {', '.join(sorted(self._models))}" if self._models else "there is none"
            raise NoSuchModel(f"no model {unknown[0]} in {self._settings.folder}; {there}")

    def adopt(self, connection: duckdb.DuckDBPyConnection, copy: Path) -> BuildReport:
        """Take what dbt made in `copy` into the warehouse, and note what is known of it."""
        made = {
            each: outcome
            for each, outcome in self._outcomes.items()
            if outcome.status is Status.OK and not outcome.node.is_test
        }
        if made:
            rows(connection, f"attach {literal(str(copy))} as built")
        for each, outcome in made.items():
            try:
                with transaction(connection):
                    _take(connection, outcome.node)
            except duckdb.Error as problem:
                self._outcomes[each] = replace(outcome, status=Status.FAILED, message=discreet(problem))
        if made:
            rows(connection, "detach built")
        is_whole = not (self._select or self._left_out)
        with transaction(connection):
            removed = _remove_gone(connection, self._models.values()) if is_whole else ()
            outcomes = tuple(self._outcomes.values())
            report = BuildReport(outcomes, self._is_full, tuple(self._left_out), tuple(removed))
            _note_columns(connection, report)
            if not self._select or outcomes:
                note_fact(connection, PROBLEM, "; ".join(report.problems))
        return report


def _place(file: Path) -> str:
    """Where a file of the user's folder is in the project."""
    return str(file if file.parts[0] in _OTHERS and len(file.parts) > 1 else "models" / file)


def _take(connection: duckdb.DuckDBPyConnection, node: Node) -> None:
    """The table as dbt made it, with its constraints and descriptions, in the place of the one that is
    there."""
    name, there = qualified(node.relation), kinds_of(connection).get(node.relation)
    where = "database_name = 'built' and schema_name = ? and table_name = ?"
    made = value(connection, f"select sql from duckdb_tables() where {where}", [node.schema, node.table])
    rows(connection, f"create schema if not exists {quoted(node.schema)}")
    if there:
        rows(connection, f"drop {there} {name}")
    rows(connection, made)
    rows(connection, f"insert into {name} from built.{name}")
    describe(connection, node)


def _remove_gone(connection: duckdb.DuckDBPyConnection, kept: Iterable[str]) -> Iterator[str]:
    """Drop the tables in `custom` whose model is gone; nobody would build them again."""
    for relation, kind in kinds_of(connection).items():
        if relation.startswith(f"{OWN}.") and relation not in kept:
            rows(connection, f"drop {kind} {qualified(relation)}")
            yield relation


def _note_columns(connection: duckdb.DuckDBPyConnection, report: BuildReport) -> None:
    """Work out which columns of what was made are made of personal ones, as for ours: no column has to be
    marked.

    Rows of an incremental table may be from SQL that it no longer has. What was not made stays as it is, and
    what is known about it as well."""
    if not report.made:
        return
    from warehouse.lineage import follow, listed  # parses SQL: only who has models of their own waits for it

    known, types = own_columns(connection), columns_of(connection)
    found = known | listed(follow(report.made, types, {**lineage()["columns"], **known}))
    for node in report.made:
        if node.kind == "incremental" and not report.is_full:
            before = known.get(node.relation, {})
            found[node.relation] = {
                name: sorted({*sources, *before.get(name, ())})
                for name, sources in found[node.relation].items()
            }
    still_there = {name: columns for name, columns in found.items() if name in types}
    note_fact(connection, OWN_COLUMNS, json.dumps(still_there))
