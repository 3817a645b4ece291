-- The archive's index (index.py), in SQLite. `crc` is of the row: a reference to a body that is not there
-- would lose a response.

-- One row per sealed file.
-- files
create table files (
    name text primary key, first_id integer not null, last_id integer not null, last_at integer not null,
    crc integer not null
) without rowid;

-- The last whole response to every call; one row per account and call. `body_id` is of the row that has its
-- body.
-- answers
create table answers (
    question_key blob not null, account text not null,
    request_id integer not null, content_sha256 blob not null, body_id integer not null, crc integer not null,
    primary key (question_key, account)
) without rowid;

-- upsert
insert into answers values (?, ?, ?, ?, ?, ?)
on conflict do update set
    request_id = excluded.request_id, content_sha256 = excluded.content_sha256, body_id = excluded.body_id,
    crc = excluded.crc
where excluded.request_id > request_id;
