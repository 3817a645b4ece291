select business_name, timezone from source.business where account = $account and _deleted_at is null
