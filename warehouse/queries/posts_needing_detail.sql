-- Posts that are new or changed since their detail was requested, newest first; one row per post and network.
select p.post_id, p.network from source.social_posts p
cross join (select max(as_of) as last from sync.coverage
    where account = $account and table_name = 'social_posts') listed
left join source.social_post_details d
    on d.account = p.account and d.post_id = p.post_id and d.network = p.network and d._deleted_at is null
where p.account = $account and p._deleted_at is null and list_contains($networks::varchar[], p.network)
    -- for two weeks after its time a post may still lack the network's id, so it is requested every night
    and (d._listing_hash is distinct from {row_hash}
        or (coalesce(d.uid, '') = '' and p.scheduled_at between listed.last - interval 14 days
            and listed.last))
order by p.scheduled_at desc nulls last, p.post_id desc
