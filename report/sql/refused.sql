-- listings that the shrink check refused: the rows from before are still counted
select table_name, lists.name as list_name
from sync.coverage left join source.lists
    on table_name = 'contacts' and lists.account = coverage.account and scope = 'list_id=' || list_id
where coverage.account = $account and is_refused order by all
