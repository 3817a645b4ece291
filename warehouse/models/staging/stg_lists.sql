-- Rows of source.lists, deleted ones too; one row per list_id.
select
    account,
    list_id,
    name,
    form_title,
    email_subject,
    reply_to,
    from_email,
    from_name,
    confirmation_email,
    success_email,
    confirmation_message,
    success_message,
    error_message,
    is_double_opt_in,
    notify_email,
    created_at,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at,
    _deleted_at as deleted_at,
    _deleted_at is not null as is_deleted
from {{ source('source', 'lists') }}
