"""The meaning of DuckDB's error texts. Only this module reads them. The messages say which program
has the file open and what to do.

DuckDB has no error types for these cases, and its texts change with versions: a test names the
version and causes each of them."""

import os
import re
from contextlib import suppress
from pathlib import Path

import duckdb

from marketing_api.address import MASK, mask_addresses
from warehouse.errors import Holder, WarehouseDamaged, WarehouseError, WarehouseTooNew

_HOLDER = re.compile(r"(?P<program>.{1,500}?) \(PID (?P<pid>\d+)\)")
_NO_ROOM = ("No space left", "File too large", "quota exceeded")
_DAMAGED = (
    "not a valid DuckDB database",
    "Corrupt database",
    "Corrupt WAL",
    "Could not read enough bytes",
    "sqlite_scanner",
    "older development version",
    "Failure while replaying WAL",
    "is a directory",
    "Is a directory",
    "Failed to decompress",
    "Serialization Error",
    "checksum",
)


class FileInUse(Exception):
    """The file is not open yet: its holder, the argument, has it."""


def is_locked(error: duckdb.Error) -> bool:
    return "Could not set lock" in str(error)


def is_out_of_memory(error: Exception) -> bool:
    """Whether a query needed more memory, or more temporary space, than it may use."""
    return (
        isinstance(error, MemoryError)
        or "Out of Memory" in str(error)
        or "max_temp_directory_size" in str(error)
    )


#: DuckDB quotes rejected values in single quotes, and names in double quotes.
_QUOTED_VALUE = re.compile(r"'[^']*'")


def mask_error(error: duckdb.Error | str) -> str:
    """The first line of the message, without values from the data."""
    line, *_ = str(error).strip().split("\n")
    return mask_addresses(_QUOTED_VALUE.sub(MASK, line))[:300]


#: Errors whose messages quote the query but no values of the tables.
_ABOUT_THE_QUERY = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)


def explain_query_error(error: Exception, *, may_quote: bool = False) -> str:
    """The message if it is about the query; otherwise only the kind of error, since the message may
    quote values of the tables.

    `may_quote`: the reader of the message may also read the tables."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, duckdb.PermissionException):
        return "it may read the tables and nothing else, no files, extensions or settings"
    if lines and (may_quote or isinstance(error, _ABOUT_THE_QUERY)):
        hints = [
            line for line in lines[1:] if line.startswith(("Did you mean", "Candidate bindings"))
        ]
        return f"{lines[0]} ({hints[0]})" if hints else lines[0]
    kind = lines[0].partition(":")[0] if lines else type(error).__name__
    return (
        f"{kind} (the message is hidden because it may contain personal data; try the query on the "
        "published copy)"
    )


def is_full(error: duckdb.Error) -> bool:
    return any(sign in str(error) for sign in _NO_ROOM)


def explain_damage(path: Path, error: duckdb.Error) -> WarehouseError | None:
    """The message for a full disk or a damaged file; None for another error."""
    if is_full(error):
        return WarehouseError(
            f"there is no space left for {path.name} in {path.parent}: free some and run again; "
            f"nothing received is lost. DuckDB says: {error}"
        )
    if any(sign in str(error) for sign in _DAMAGED):
        return WarehouseDamaged(
            f"{path} is damaged: restore the last backup with `marketing-sync restore`. Without "
            "one, move it away and run `marketing-sync rebuild`: `history`, and the runs in "
            f"`sync`, then start empty. DuckDB says: {str(error).splitlines()[0]}"
        )
    return None


def explain_unopened(path: Path, error: duckdb.Error) -> Exception:
    """The error for a file that DuckDB could not open."""
    text = str(error)
    if is_locked(error):
        return FileInUse(_read_holder(text))
    if "different configuration than existing connections" in text:
        return FileInUse(Holder(os.getpid(), "this program, with other settings"))
    if "newer version of DuckDB" in text:
        return WarehouseTooNew(
            f"{path} was written by a newer DuckDB than the {duckdb.__version__} installed here: "
            "upgrade this installation (or move the file away and run `marketing-sync rebuild`). "
            f"DuckDB says: {text.splitlines()[0]}"
        )
    return explain_damage(path, error) or WarehouseError(f"{path} cannot be opened: {text}")


def _read_holder(text: str) -> Holder:
    """The program's name with its sub-command. The rest of the command line is never shown, since
    it may hold anything."""
    found = _HOLDER.match(text.partition("lock is held in ")[2])
    if found is None:
        return Holder(None, "another program")
    pid = int(found["pid"])
    program = Path(found["program"]).name
    with suppress(OSError, IndexError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        script = words[1:] if words[1] != "-m" else words[2:]
        if Path(words[0]).name.startswith("python") and not script[0].startswith("-"):
            words = script  # the script that it runs
        command = [word for word in words[1:2] if re.fullmatch(r"[a-z][a-z-]*", word)]
        program = " ".join([Path(words[0]).name or program, *command])
    return Holder(pid, program or "another program")  # a process that is just ending has no name
