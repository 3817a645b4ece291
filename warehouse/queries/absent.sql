-- The rows of the scopes that were read which the listing does not have; one row per row and scope.
select {columns}, x._scope from {stored} t join {scopes} x on {in_scope}
where t._deleted_at is null and not exists (from {staged} s where s._is_listed and {same_key})
