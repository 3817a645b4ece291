-- in the time zone that the account was read in last, which accounts.toml or MARKETING_TIMEZONE may decide
select business_name, coalesce((select arg_max(timezone, as_of) from sync.readings where account = $account), timezone) as timezone
from source.business where account = $account and _deleted_at is null
