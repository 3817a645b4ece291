-- The statements of `outbox.py`, by name. `state in ('planned', 'sending', 'unknown')` has to be written as in
-- the partial index.

-- ---- looking

-- last
select subject, item_id, content, state, message, request_id, sent_at, done_at, verified_at, drift, source_name
from json_each(:subjects) as named
cross join effect on effect.account = :account and effect.kind = :kind and subject = named.value
join item using (item_id)
join push using (push_id)
where state <> 'skipped'
    and (:done_before is null or (item_id < :done_before and state in ('applied', 'verified')))
order by item_id;

-- pushes
select push_id, account, kind, source_name as source, row_count, begun_at, options
from push where :account is null or account = :account order by push_id desc limit :limit;

-- push
select push_id, account, kind, source_name as source, row_count, begun_at, options
from push where push_id = :push_id;

-- items
select * from entry
where push_id = :push_id and state in (select value from json_each(:states))
order by item_id;

-- open
select * from entry
where state in ('planned', 'sending', 'unknown') and (:account is null or account = :account)
    and item_id > :after and item_id <= coalesce(:until, item_id)
order by item_id
limit :limit;

-- open_ends
select count(*), coalesce(max(item_id) filter (where state = 'unknown'), 0), coalesce(max(item_id), 0)
from entry
where state in ('planned', 'sending', 'unknown') and account = :account;

-- open_counts
select account, count(*) from entry where state in ('planned', 'sending', 'unknown') group by account;

-- open_by_push
select
    push_id, source, kind, count(*),
    count(distinct case when must_look_up and contact_id is null then email end)
        + sum(coalesce(json_extract(expected, '$.look_up'), 0))
from entry
where state in ('planned', 'sending', 'unknown') and account = :account
group by push_id order by push_id;

-- subjects
select item_id, subject from json_each(:item_ids) cross join effect on item_id = value order by item_id;

-- sent_to
select * from entry
where contact_id = :contact_id and account = :account and kind = :kind
    and state in ('applied', 'verified', 'unknown', 'sending');

-- synced_at
select max(done_at)
from effect join item using (item_id)
where account = :account and kind = :kind and subject >= :first and subject < :behind
    and state in ('applied', 'verified');

-- A row that is part of several items has the first state in `ranked` that one of them has. A mismatch on
-- read-back has a separate rank.
-- rows_by_state
with ranks as (select key as rank, value as state from json_each(:ranked)),
worst as (
    select min(rank) as rank
    from item, json_each(item.rows) as input_row
    join ranks
        on ranks.state
        = iif(item.state in ('applied', 'verified') and item.drift <> '{}', 'mismatch', item.state)
    where push_id = :push_id
    group by input_row.value
)
select state, count(*) from worst join ranks using (rank) group by state;

-- requests_by_state
select state, count(*) from item where push_id = :push_id and operation is not null group by state;

-- drifted
select count(*) filter (where drift <> '{}') from item where push_id = :push_id;

-- begun_at
select begun_at from push order by push_id limit 1;

-- revision
select value from revision;

-- changed_since
select * from entry where revision > :revision order by revision, item_id;

-- rejected_by_check
select distinct coalesce(email, contact_id, ''), coalesce(message, '')
from item join push using (push_id)
where account = :account and source_name = :source and state = 'rejected' and operation is null
    and rejected_by = 'check';

-- claims
select subject, takes_away, is_wanted from claim where account = :account and activation = :activation;

-- claimers
select distinct account, activation from claim;

-- not_read_back
select push_id from push
where account = :account and json_extract(options, '$.is_read_back') = 0
    and exists (
        select 1 from item where item.push_id = push.push_id and state in ('applied', 'verified', 'unknown')
    );

-- ---- enqueueing

-- add_push
insert into push (
    account, kind, source_name, source_hash, row_count, item_count, new_count, changed_count,
    idle_count, bad_count, begun_at, run, options
)
values (
    :account, :kind, :source_name, :source_hash, :row_count, :item_count, :new_count, :changed_count,
    :idle_count, :bad_count, :now, :run, :options
)
returning push_id;

-- add_item
insert into item (
    push_id, rows, email, contact_id, operation, params, expected, must_look_up,
    state, planned_at, changed_at, revision
)
values (
    :push_id, :rows, :email, :contact_id, :operation, :params, :expected, :must_look_up,
    'planned', :now, :now, :revision
)
returning item_id;

-- add_effect
insert into effect (account, kind, subject, item_id, content)
values (:account, :kind, :subject, :item_id, :content);

-- add_row
insert into item (
    rows, email, contact_id, state, message, rejected_by, push_id, planned_at, changed_at, done_at, revision
)
values (:rows, :email, :contact_id, :state, :message, :rejected_by, :push_id, :now, :now, :now, :revision);

-- correct
update item
set state = 'skipped', rejected_by = null, message = 'corrected in push ' || :push_id, changed_at = :now,
    revision = :revision
where state = 'rejected' and (operation is null or :corrects_refused)
    and push_id in (select push_id from push where account = :account and kind = :kind)
    and not exists (
        select 1 from json_each(item.rows) as input_row
        where push_id || '[' || input_row.value || ']' not in (select value from json_each(:named))
    );

-- add_claims
insert or replace into claim (account, activation, subject, takes_away, is_wanted)
select :account, :activation, value, :takes_away, :is_wanted from json_each(:subjects);

-- drop_claims
delete from claim
where account = :account and activation = :activation
    and subject in (select value from json_each(:subjects));

-- ---- sending

-- recover
update item
set state = 'unknown', message = 'the program ended before an answer came', changed_at = :now,
    revision = :revision
where state = 'sending' and push_id in (select push_id from push where account = :account);

-- claim
update item
set state = 'sending', attempts = attempts + 1, sent_at = :now, changed_at = :now, message = null,
    request_id = null, contact_id = coalesce(:contact_id, contact_id),
    expected = coalesce(:expected, expected), revision = :revision
where item_id = :item_id and state = 'planned';

-- Something of this push is sent now, so it has to be read back again.
-- unread
update push
set options = json_set(options, '$.is_read_back', json('false'))
where push_id = (select push_id from item where item_id = :item_id)
    and json_extract(options, '$.is_read_back') is not 0;

-- The item's subjects by address also get the contact's id.
-- name_contact
insert or ignore into effect (account, kind, subject, item_id, content)
select account, kind, :contact_id || substr(subject, length(normal_form(email)) + 1), item_id, content
from effect join item using (item_id)
where item_id = :item_id and substr(subject, 1, length(normal_form(email)) + 1) = normal_form(email) || '|';

-- state
select state from item where item_id = :item_id;

-- settle
update item
set state = :state, message = :message, rejected_by = :rejected_by,
    request_id = coalesce(:request_id, request_id),
    changed_at = case when :state = state then changed_at else :now end,
    done_at = case when :state in ('applied', 'verified', 'rejected') then coalesce(done_at, :now) end,
    verified_at = case when :state = 'verified' then :now else verified_at end,
    drift = coalesce(:drift, drift), contact_id = coalesce(contact_id, :contact_id), revision = :revision
where item_id = :item_id;

-- unclaim
update item
set state = 'planned', attempts = attempts - 1, sent_at = null, changed_at = :now, revision = :revision
where item_id = :item_id and state = 'sending';

-- note_read_back
update push
set options = json_set(options, '$.is_read_back', json('true'))
where push_id in (select value from json_each(:push_ids)) and json_extract(options, '$.is_read_back') = 0;

-- ---- maintenance

-- cancel
update item
set state = 'skipped', message = 'cancelled', changed_at = :now, revision = :revision
where (state = 'planned' or (:unknown and state = 'unknown'))
    and push_id in (
        select push_id from push where account = :account and (:push_id is null or push_id = :push_id)
    );

-- refused
select * from entry
where state = 'rejected' and item_id in (
    select item_id from retriable
    where account = :account and (:push_id is null or push_id = :push_id) and not is_superseded
);

-- count_superseded
select count(*) from retriable
where account = :account and (:push_id is null or push_id = :push_id) and is_superseded
    and item_id not in (select value from json_each(:left));

-- look_first
update item
set state = 'unknown', attempts = 0, rejected_by = null, done_at = null, revision = :revision
where item_id not in (select value from json_each(:left)) and item_id in (
    select item_id from retriable
    where account = :account and (:push_id is null or push_id = :push_id) and not is_superseded
        and may_have_arrived and kind in (select value from json_each(:looked_for))
);

-- plan_again
update item
set state = 'planned', message = null, changed_at = :now, attempts = 0, rejected_by = null, done_at = null,
    revision = :revision
where item_id not in (select value from json_each(:left)) and item_id in (
    select item_id from retriable
    where account = :account and (:push_id is null or push_id = :push_id) and not is_superseded
        and not (may_have_arrived and kind in (select value from json_each(:looked_for)))
);

-- prune_effects
delete from effect where item_id in (
    select item_id from item
    where state = 'skipped' and push_id in (select push_id from push where begun_at < :before)
);

-- prune
delete from item where state = 'skipped' and push_id in (select push_id from push where begun_at < :before);

-- ---- resuming with a copy or a backup that is older than some requests

-- doubt_maybe_sent
update item
set state = 'unknown', message = 'the outbox was damaged: whether it was sent is not known',
    sent_at = coalesce(sent_at, planned_at),
    changed_at = :now, revision = :revision
where state in ('planned', 'sending') and operation is not null;

-- An item that is not idempotent can be looked for only if its contact is known.
-- doubt_not_to_be_found
update item
set state = 'rejected', message = 'the outbox was damaged: whether it was sent is not known',
    rejected_by = 'check', changed_at = :now,
    revision = :revision
where state = 'unknown' and contact_id is null
    and push_id in (select push_id from push where kind in (select value from json_each(:not_idempotent)));

-- ---- forgetting people (with functions of `write_back.forgetting`)

-- theirs
create temp table theirs as
select item_id from item join push using (push_id) where is_theirs(account, email, contact_id, params);

-- count_theirs
select (select count(*) from theirs)
    + (select count(*) from claim where is_their_subject(account, subject));

-- forget_effects
delete from effect where item_id in (select item_id from theirs);

-- forget_items
delete from item where item_id in (select item_id from theirs);

-- forget_claims
delete from claim where is_their_subject(account, subject);
