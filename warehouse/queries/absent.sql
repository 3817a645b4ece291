-- Stored rows that the listing of a scope no longer has; one row per row and scope.
select {columns}, x._scope from {stored} t join {scopes} x on {in_scope}
where t._deleted_at is null and not exists (from {staged} s where s._is_listed and {same_key})
