-- How many of the staged rows are new, changed, already stored and to be written, and their total; one row.
select count(*) filter (where is_new),
    count(*) filter (where not is_new and (is_different or is_back)), count(rid), count(*),
    (select count(*) from {staged})
from {change}
