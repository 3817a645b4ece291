-- Every version of source.contacts; one row per list_id, contact_id and valid_from.
{{ config(unique_key=['account', 'list_id', 'contact_id', 'valid_from']) }}
{{ versions('contacts', ['list_id', 'contact_id'], [
    'email', 'email_normalized', 'status', 'status_code', 'registered_at', 'custom_fields', 'extra'
]) }}
