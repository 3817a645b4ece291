-- Coupons of addresses whose contacts are all gone, once every list was read completely; one row per coupon.
select rowid as rid, email_normalized as address
from source.coupons c
where account = getvariable('account') and _deleted_at is null
    and exists (from source.contacts p
        where account = getvariable('account') and p.email_normalized = c.email_normalized)
    and not exists (
        from source.contacts p
            where account = getvariable('account') and p.email_normalized = c.email_normalized
            and _deleted_at is null
    )
    and not exists (
        from source.lists l where account = getvariable('account') and _deleted_at is null and not exists (
            from sync.coverage v where account = getvariable('account') and table_name = 'contacts'
                and scope = concat('list_id=', l.list_id)
                and is_complete and reason is null
        )
    )
