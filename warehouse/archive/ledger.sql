-- The archive's ledger (ledger.py), in SQLite. `crc` is the checksum of the row: damaged rows are detected and skipped.

-- Requests that are recorded but not yet sealed into a file. `head` is the row as MessagePack; `body` is zstd and decompresses to `size` bytes.
-- requests
create table requests (
    request_id integer primary key, head blob not null, body blob not null, size integer not null, crc integer not null
);

-- The log of loads, in the order in which they were logged.
-- loads
create table loads (number integer primary key, event blob not null, crc integer not null);

-- The assets that a run is reading, or was reading when it was killed; `holder` is its folder for work in progress, while it runs.
-- unfinished
create table unfinished (holder text primary key, since integer not null, assets text not null, crc integer not null);

-- One row per sealed file. This and the next table can be rebuilt from the files.
-- files
create table files (
    name text primary key, first_id integer not null, last_id integer not null, last_at integer not null, crc integer not null
) without rowid;

-- The last complete response to every call; one row per account and call. `body_id` is the id of the row with its body.
-- answers
create table answers (
    question_key blob not null, account text not null,
    request_id integer not null, content_sha256 blob not null, body_id integer not null, crc integer not null,
    primary key (question_key, account)
) without rowid;

-- upsert
insert into answers values (?, ?, ?, ?, ?, ?)
on conflict do update set
    request_id = excluded.request_id, content_sha256 = excluded.content_sha256, body_id = excluded.body_id, crc = excluded.crc
where excluded.request_id > request_id;
