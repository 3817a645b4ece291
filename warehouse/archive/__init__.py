"""Every request and what came back: the audit trail, and the source from which all tables can be
rebuilt.

    archive/
    ├── requests/date=2026-11-21/NAME.parquet       a row per request (`row.Row` has the columns)
    ├── requests/month=2026-10/NAME.parquet         the same of a month that is over
    ├── bodies/date=2026-11-21/REQUEST_ID.json.zst  a body too large for a row
    ├── ledger.sqlite                               unsealed requests, the load log, where files are
    ├── forgotten.json                              fingerprints of forgotten people, and their key
    ├── checkpoints/2025-10-01-NAME.duckdb          the tables as of then; earlier bodies are gone
    ├── retired.txt                                 names of files that were removed on purpose
    └── tmp/                                        work in progress

The files are one whole: a row may refer to the body of an earlier row, so files of single days must
not be deleted. They are only written again to be merged, or to drop bodies (`compaction`).

Other packages use `archive`. The other modules are its parts, and import one another
downwards: archive → reader, compaction → ledger → sealed → row, file_store → disk; the list of
forgotten people (`suppression`) is apart from them."""
