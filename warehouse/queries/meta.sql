-- The table in which a warehouse file describes itself.
create schema if not exists sync;
create table if not exists sync.meta (name varchar, value varchar);
comment on table sync.meta is 'Facts about this file; one row per name.';
comment on column sync.meta.name is 'schema_version: the version of the tables in this file.';
comment on column sync.meta.value is 'The fact, as text.';
