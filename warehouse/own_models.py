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
from pathlib import Path
from typing import Any

import duckdb

from marketing_api.rate_limit.shared_state import private_folder
from marketing_api.redaction import without_addresses
from warehouse.archive.disk import Workspace, copy_locked, write_file
from warehouse.child import Child, Ended, Silent
from warehouse.connection import DEADLINE_S, OnWait, connect
from warehouse.dbt_project import OWN, PROJECT, Node, fingerprint
from warehouse.duckdb_errors import discreet_text
from warehouse.errors import NoWarehouse, WarehouseError
from warehouse.masking import lineage
from warehouse.models import ModelSettings, OnNode, Outcome, Status
from warehouse.schema import columns_of, ensure_schema, fact, kinds_of, note_fact
from warehouse.sql import literal, qualified, quoted, rows, transaction, value
from warehouse.tables import TABLES

#: Names in sync.meta: what is known about the columns of the tables that stand there, and what is wrong with
#: the models.
_COLUMNS, PROBLEM = "own_columns", "own_problem"

_TEMPLATES = PROJECT / "templates"
_SKELETON = PROJECT / "own_project"

#: Folders of the user's folder that hold something else than models; dbt's names.
_OTHERS = ("macros", "tests", "snapshots", "seeds")
_SUFFIXES = (".sql", ".yml", ".yaml", ".md", ".csv", ".py")
#: A file as messages name it.
_PATH = re.compile(r"\w++(?:[./-]++\w++)*+")
#: dbt takes seconds to read the files; who has it compute in them is ended.
_READING_S = 300.0
_STATUS = {"success": Status.OK, "pass": Status.OK, "warn": Status.WARNED, "skipped": Status.SKIPPED}


@dataclass(frozen=True, slots=True)
class OwnSettings:
    """`folder`: where the files are. `seconds`: how long a model may take. `memory`: as DuckDB writes it."""

    folder: Path
    seconds: float = 600.0
    memory: str = "2GB"
    variables: Mapping[str, str] = field(default_factory=lambda: ModelSettings().variables)

    def files(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.suffix in _SUFFIXES and path.is_file())


@dataclass(frozen=True, slots=True)
class OwnReport:
    """Every model and test that was to run, in the order of running; `left_out`: files that dbt could not
    read, and why; `removed`: tables whose model is gone."""

    outcomes: tuple[Outcome, ...] = ()
    left_out: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def of(self, *statuses: Status) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.status in statuses]

    @property
    def made(self) -> list[Node]:
        return [outcome.node for outcome in self.of(Status.OK) if not outcome.node.is_test]

    @property
    def problems(self) -> list[str]:
        """What is wrong, a line each, without values from the data."""
        return [*self.left_out, *(outcome.sentence for outcome in self.of(Status.FAILED))]

    @property
    def warnings(self) -> list[str]:
        return [outcome.sentence for outcome in self.of(Status.WARNED)]


class NoSuchModel(WarehouseError):
    """A name of no model in the folder."""


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
    deadline_s: float = DEADLINE_S,
    on_wait: OnWait | None = None,
    on_node: OnNode | None = None,
) -> OwnReport:
    """Build the models in the folder with dbt, and test them. `select`: these alone, by name. `full`:
    incremental ones begin anew.

    The warehouse is held while it is copied, and while the tables come back. Raises NoSuchModel, and what
    `connect` raises."""
    if not path.exists():
        raise NoWarehouse(f"there is no {path} yet: run `marketing-sync sync` first")
    building = _Building(settings, select, is_full=full)
    held = {"deadline_s": deadline_s, "on_wait": on_wait}
    with closing(Workspace(path.parent / "tmp" / "own_models")) as workspace:
        workspace.sweep()
        folder, copy = workspace.folder(), workspace.file(path.name)
        if settings.files():
            with connect(path, **held):  # type: ignore[arg-type]
                copy_locked(path, copy)
            with _parsed_before(folder):
                building.run(folder, on_node)
        elif not _has_any(path, deadline_s, on_wait):
            return building.report
        with connect(path, memory_limit=settings.memory, **held) as connection:  # type: ignore[arg-type]
            ensure_schema(connection, TABLES.values())
            with _attached(connection, copy):
                building.adopt(connection)
    return building.report


@contextmanager
def _parsed_before(folder: Path) -> Iterator[None]:
    """What dbt has read of the project, ours in it: it reads only files that are new since."""
    kept, parsed = (
        private_folder() / f"own-models-{fingerprint()}.msgpack",
        folder / "target" / "partial_parse.msgpack",
    )
    parsed.parent.mkdir(exist_ok=True)
    with suppress(FileNotFoundError):
        shutil.copyfile(kept, parsed)
    yield
    with suppress(FileNotFoundError):
        write_file(kept, parsed.read_bytes())


def _has_any(path: Path, deadline_s: float, on_wait: OnWait | None) -> bool:
    """Whether the warehouse holds anything of such models."""
    with connect(path, read_only=True, deadline_s=deadline_s, on_wait=on_wait) as connection:
        return bool(fact(connection, PROBLEM)) or any(
            relation.startswith(f"{OWN}.") for relation in kinds_of(connection)
        )


@contextmanager
def _attached(connection: duckdb.DuckDBPyConnection, copy: Path) -> Iterator[None]:
    if not copy.exists():
        yield
        return
    rows(connection, f"attach {literal(str(copy))} as built")
    try:
        yield
    finally:
        rows(connection, "detach built")


class _Building:
    """One building: what dbt is given, and what became of it so far."""

    def __init__(self, settings: OwnSettings, select: Sequence[str], *, is_full: bool) -> None:
        self._settings, self._select, self._is_full = settings, select, is_full
        self._files = {_place(path.relative_to(settings.folder)): path for path in settings.files()}
        self._left_out: list[str] = []
        self._outcomes: dict[str, Outcome] = {}  # by dbt's id
        self._models: dict[str, str] = {}  # of what dbt read last: name → relation
        self._removed: list[str] = []

    @property
    def report(self) -> OwnReport:
        return OwnReport(tuple(self._outcomes.values()), tuple(self._left_out), tuple(self._removed))

    def run(self, folder: Path, on_node: OnNode | None) -> None:
        """Again after each process that did not come to its end, for what is left."""
        while self._files and not self._is_over(folder, on_node):
            pass

    def _is_over(self, folder: Path, on_node: OnNode | None) -> bool:
        """Whether nothing is left to do after one process."""
        self._lay_out(folder)
        running, total = "", 0
        with Child("warehouse.own_build", folder=folder) as child:
            child.send(json.dumps(self._order()))
            try:
                while True:
                    event = json.loads(child.receive(self._settings.seconds if running else _READING_S))
                    if "problem" in event:
                        return not self._leave_out(event["problem"], event.get("file", ""))
                    if "plan" in event:
                        total, self._models = event["plan"], event["models"]
                        self._check_names()
                    elif "begins" in event:
                        running = event["begins"]
                        if on_node:
                            on_node(len(self._outcomes) + 1, total, event["name"])
                    elif "ended" in event:
                        running, self._outcomes[event["ended"]] = "", self._outcome(event)
                    else:
                        return True
            except (Silent, Ended) as end:
                if not running:
                    why = (
                        self._why(end)
                        if isinstance(end, Ended)
                        else f"took longer than {_READING_S:g} s to read them"
                    )
                    self._left_out.append(f"the models in {self._settings.folder} were not built: dbt {why}")
                    return True
                self._outcomes[running] = self._ended(running, f"it {self._why(end)}")
                return False

    def _why(self, end: Exception) -> str:
        if isinstance(end, Silent):
            return (
                f"took longer than {self._settings.seconds:g} s and was ended: let it do less, or set "
                "MARKETING_MODELS_SECONDS"
            )
        return (
            "ended its process, as what takes more memory than there is does: let it do less than "
            f"{self._settings.memory}"
        )

    def _order(self) -> dict[str, Any]:
        by_status: dict[bool, list[str]] = {True: [], False: []}
        for unique_id, outcome in self._outcomes.items():
            by_status[outcome.status is Status.FAILED].append(unique_id)
        variables = {**self._settings.variables, "own_memory": self._settings.memory}
        given = {"names": list(self._select), "is_full": self._is_full, "variables": variables}
        return given | {"failed": by_status[True], "done": by_status[False]}

    def _lay_out(self, folder: Path) -> None:
        """The project that dbt reads: the skeleton, ours as a package, the user's files but for those that
        are left out."""
        for name in ("models", *_OTHERS):
            shutil.rmtree(folder / name, ignore_errors=True)
        shutil.copytree(_SKELETON, folder, dirs_exist_ok=True)
        for link, target in (
            ("packages/marketing_sync", PROJECT),
            ("ours/macros", PROJECT / "macros"),
            ("ours/tests", PROJECT / "tests"),
        ):
            (folder / link).parent.mkdir(exist_ok=True)
            if not (folder / link).is_symlink():
                (folder / link).symlink_to(target, target_is_directory=True)
        for place, source in self._files.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / place)

    def _leave_out(self, problem: str, file: str) -> bool:
        """Take out the file that the problem is about, with the models that a description is about: without
        it, they might lose what they hold. False when it is about none."""
        # some messages name a file without the folder of its kind, some name none
        spelled = {place.partition("/")[2]: place for place in self._files} | {
            place: place for place in self._files
        }
        found = [spelled[word] for word in (*_PATH.findall(problem), file) if word in spelled]
        said = _PATH.sub(
            lambda word: str(self._files[spelled[word[0]]]) if word[0] in spelled else word[0],
            " ".join(problem.split()),
        )
        said = without_addresses(said)[:600]
        if not found:
            self._left_out.append(f"the models in {self._settings.folder} cannot be read: {said}")
            return False
        place = found[0]
        text = (
            self._files[place].read_text(encoding="utf-8", errors="replace")
            if place.endswith((".yml", ".yaml"))
            else ""
        )
        words = set(re.findall(r"\w+", text))
        self._left_out.append(f"{self._files[place]} is left out, and what it made before stays: {said}")
        for each in [each for each in self._files if each == place or Path(each).stem in words]:
            del self._files[each]
        return True

    def _check_names(self) -> None:
        if unknown := [name for name in self._select if name not in self._models and not self._left_out]:
            there = f"there are {', '.join(sorted(self._models))}" if self._models else "there is none"
            raise NoSuchModel(f"no model {unknown[0]} in {self._settings.folder}; {there}")

    def _outcome(self, event: Mapping[str, Any]) -> Outcome:
        node = Node(
            **event["node"] | {"needs": tuple(event["node"]["needs"]), "key": tuple(event["node"]["key"])}
        )
        status, message = _STATUS.get(event["status"], Status.FAILED), event["message"] or ""
        failures = event["failures"] or 0 if node.is_test else 0
        return Outcome(
            node, status, event["seconds"], failures, "" if status is Status.OK else _reason(message)
        )

    def _ended(self, unique_id: str, why: str) -> Outcome:
        kind, _, name, *_ = unique_id.split(".")
        node = Node(name, "test" if "test" in kind else kind, name, self._models.get(name, ""), "", "", ())
        return Outcome(node, Status.FAILED, message=why)

    # -- what dbt made comes back

    def adopt(self, connection: duckdb.DuckDBPyConnection) -> None:
        for unique_id, outcome in self._outcomes.items():
            if outcome.status is Status.OK and not outcome.node.is_test:
                try:
                    with transaction(connection):
                        _take(connection, outcome.node)
                except duckdb.Error as problem:
                    self._outcomes[unique_id] = replace(
                        outcome, status=Status.FAILED, message=discreet_text(str(problem))
                    )
        with transaction(connection):
            if not (self._select or self._left_out):
                self._removed += _remove_gone(connection, self._models.values())
            _note_columns(connection, self.report.made, is_full=self._is_full)
            if not self._select or self._outcomes:
                note_fact(connection, PROBLEM, "; ".join(self.report.problems))


def _place(file: Path) -> str:
    """Where a file of the user's folder is in the project."""
    return str(file if file.parts[0] in _OTHERS and len(file.parts) > 1 else "models" / file)


def _reason(message: str) -> str:
    """What dbt says of a model behind the line that names it."""
    lines = [line.strip() for line in message.strip().splitlines() if line.strip()]
    return discreet_text(lines[1] if len(lines) > 1 and " in " in lines[0] else " ".join(lines))


def _take(connection: duckdb.DuckDBPyConnection, node: Node) -> None:
    """The table as dbt made it, with its constraints and descriptions, in the place of the one that is
    there."""
    name, there = qualified(node.relation), kinds_of(connection).get(node.relation)
    where = (
        f"database_name = 'built' and schema_name = {literal(node.schema)} and table_name = "
        f"{literal(node.table)}"
    )
    made = value(connection, f"select sql from duckdb_tables() where {where}")
    rows(connection, f"create schema if not exists {quoted(node.schema)}")
    if there:
        rows(connection, f"drop {there} {name}")
    rows(connection, made)
    rows(connection, f"insert into {name} from built.{name}")
    columns = columns_of(connection)[node.relation]
    rows(connection, f"comment on table {name} is {literal(node.description)}")
    for column, text in node.columns.items():
        if column in columns:
            rows(connection, f"comment on column {name}.{quoted(column)} is {literal(text)}")


def _remove_gone(connection: duckdb.DuckDBPyConnection, kept: Iterable[str]) -> Iterator[str]:
    """Drop the tables in `custom` whose model is gone; nobody would build them again."""
    for relation, kind in kinds_of(connection).items():
        if relation.startswith(f"{OWN}.") and relation not in kept:
            rows(connection, f"drop {kind} {qualified(relation)}")
            yield relation


def _note_columns(connection: duckdb.DuckDBPyConnection, made: Sequence[Node], *, is_full: bool) -> None:
    """Work out which columns of what was made are made of personal ones, as for ours: no column has to be
    marked.

    Rows of an incremental table may be from SQL that it no longer has. What was not made stays as it is, and
    what is known about it as well."""
    if not made:
        return
    from warehouse.lineage import follow, listed  # parses SQL: only who has models of their own waits for it

    known, types = own_columns(connection), columns_of(connection)
    found = known | listed(follow(made, types, {**lineage()["columns"], **known}))
    for node in made:
        if node.kind == "incremental" and not is_full:
            before = known.get(node.relation, {})
            found[node.relation] = {
                name: sorted({*sources, *before.get(name, ())})
                for name, sources in found[node.relation].items()
            }
    note_fact(
        connection, _COLUMNS, json.dumps({name: columns for name, columns in found.items() if name in types})
    )


def own_columns(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, list[str]]]:
    """What is known about the columns of what stands in `custom`: relation → column → the personal columns
    that it is made of."""
    found: dict[str, dict[str, list[str]]] = json.loads(fact(connection, _COLUMNS) or "{}")
    return found
