select subject, as_of, coverage_rate, is_overdue, rejected_count,
    odd_date_count, reason
from marts.data_freshness where account = $account order by coverage_rate, subject
