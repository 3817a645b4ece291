-- How many reviews each channel gained since the night before, and its rating; one row per channel and
-- observed_on.
with changes as (
    {{ daily_changes(ref('stg_online_review_channels'), ['channel'], ['review_count']) }}
)

select changes.*, channels.average_rating
from changes
join {{ ref('stg_online_review_channels') }} as channels using (account, channel, observed_on)
