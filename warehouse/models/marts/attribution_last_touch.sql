-- The last touch of each visit and each redeemed coupon, as attribution has it; one row per outcome.
-- Deprecated.
{{ config(materialized='view') }}
{{ single_touch('last_credit') }}
