-- How many of the staged rows are new, changed, stored already and to be written, and how many there are; one
-- row.
select count(*) filter (where is_new),
    count(*) filter (where not is_new and (is_different or is_back)), count(rid), count(*),
    (select count(*) from {staged})
from {change}
