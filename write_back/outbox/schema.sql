-- The outbox. A change of these tables needs a new `store.VERSION`.
create table push (
    push_id integer primary key autoincrement,
    account text not null,
    kind text not null,
    source_name text not null,
    source_hash text not null,
    row_count integer not null,
    item_count integer not null,
    new_count integer not null,
    changed_count integer not null,
    idle_count integer not null,
    bad_count integer not null,
    begun_at real not null,
    run text,
    options text not null
);
create table item (
    item_id integer primary key autoincrement,
    push_id integer not null references push,
    rows text not null,
    email text,
    contact_id integer,
    operation text,
    params text,
    expected text,
    must_look_up integer not null default 0,
    state text not null,
    message text,
    rejected_by text,
    attempts integer not null default 0,
    planned_at real not null,
    sent_at real,
    changed_at real not null,
    done_at real,
    verified_at real,
    drift text,
    request_id integer,
    revision integer not null
);
create index item_by_push on item (push_id, state);
create index item_open on item (item_id) where state in ('planned', 'sending', 'unknown');
create index item_by_contact on item (contact_id) where contact_id is not null;
create index item_by_revision on item (revision);
create table effect (
    account text not null,
    kind text not null,
    subject text not null,
    item_id integer not null references item,
    content text not null,
    primary key (account, kind, subject, item_id)
) without rowid;
create index effect_by_item on effect (item_id);
create table claim (
    account text not null,
    activation text not null,
    subject text not null,
    takes_away integer not null,
    is_wanted integer not null,
    primary key (account, activation, subject)
) without rowid;
create table revision (value integer not null);
insert into revision values (0);
