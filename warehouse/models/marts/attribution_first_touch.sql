-- The first touch of each visit and each redeemed coupon, as attribution has it; one row per outcome.
-- Deprecated.
{{ config(materialized='view') }}
{{ single_touch('first_credit') }}
