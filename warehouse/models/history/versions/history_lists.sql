-- Every version of source.lists; one row per list_id and valid_from.
{{ config(unique_key=['account', 'list_id', 'valid_from']) }}
{{ versions('lists', ['list_id'], [
    'name', 'form_title', 'email_subject', 'reply_to', 'from_email', 'from_name',
    'confirmation_email', 'success_email', 'confirmation_message', 'success_message',
    'error_message', 'is_double_opt_in', 'notify_email', 'created_at', 'extra'
]) }}
