-- What each visit and each redeemed coupon goes back to, by the last touch in the window; one row per outcome.
{{ config(materialized='view') }}
{{ attribution('last_touch') }}
