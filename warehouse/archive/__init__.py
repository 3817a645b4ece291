"""Every request and what came back, kept for ever: the audit trail, and the source from which all tables can be rebuilt.

    archive/
    ├── requests/date=2026-11-21/NAME.parquet       a row per request (`row.Row` names the columns), zstd; the day is UTC's
    ├── bodies/date=2026-11-21/REQUEST_ID.json.zst  a body too large for a row
    ├── journals/NAME.journal                       what one process recorded and has not sealed into a file yet
    ├── loads.jsonl                                 the log of loads
    ├── forgotten.json                              fingerprints of people who asked to be forgotten, and their key
    ├── index.sqlite                                derived from the files: delete it and it is built again
    └── tmp/                                        work in progress

The files are one whole: a row may refer to the body of an earlier row, so files of single days must not be deleted. They only change
where people are taken out who asked to be forgotten (`rewriting`).

`archive` is the door for everybody else; the other modules are its parts and import one another downwards:
rewriting → archive → reader → index → sealed, journal → row, disk; the log of loads (`load_log`) and the list of forgotten people
(`suppression`) stand beside them.
"""

from warehouse.archive.archive import Archive
from warehouse.archive.reader import Reusable

__all__ = ["Archive", "Reusable"]
