-- Every version of source.users; one row per business_id, user_id and valid_from.
{{ config(unique_key=['account', 'business_id', 'user_id', 'valid_from']) }}
{{ versions('users', ['business_id', 'user_id'], [
    'full_name', 'username', 'user_group', 'status', 'extra'
]) }}
