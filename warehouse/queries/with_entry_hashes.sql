-- The staged details, each with the hash of its entry in the listing's table; one row per detail.
select s.* replace ({row_hash} as _entry_hash)
from {staged} s left join {listing} p on p.account = getvariable('account') and {same_key}
