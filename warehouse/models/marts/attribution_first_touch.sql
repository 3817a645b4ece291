-- What each visit and each redeemed coupon goes back to, by the first touch in the window; one row per outcome.
{{ config(materialized='view') }}
{{ attribution('first_touch') }}
