-- Texts of one column that may name a person, in rows that are not about them; one row per row of the table.
select {account} as account, {column} as "column", {when} as changed_at, {text} as text
from {table} as t
where {likely} and not {about}
