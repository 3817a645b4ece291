-- The published file's changes that the database `before` lists and this one does not; one row per change.
-- All changes of one publishing are noted together, so the moment tells which are lacking.
select * from before.sync.schema_changes o where origin = 'published' and not exists (
    from sync.schema_changes c where c.origin = o.origin and c.noticed_at = o.noticed_at
)
