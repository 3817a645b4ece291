-- Texts of one column that name a person, in rows that are not about them; one row per row of the table.
select {account} as account, {column} as "column", {when} as changed_at, regexp_extract({text}, $shown) as text
from {table} as t
where {may_name} and regexp_matches({text}, $likely) and regexp_matches({text}, $whole) and not {about}
