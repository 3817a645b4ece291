-- Every contact and address of one person: the contacts that have or had the requested address, or an address
-- of the requested contact, and all addresses of these contacts; one row per account, contact_id and email.
-- Placeholder: tables, each with contacts' addresses in normal form.
with known as (
    select distinct account, contact_id, email from ({tables}) where account = coalesce($account, account)
),

first_found as (
    select account, contact_id, email from known where contact_id = $contact_id or email = $address
),

people as (
    select account, contact_id from known where email in (select email from first_found)
    union
    select account, contact_id from first_found
)

select account, contact_id, email from known semi join people using (account, contact_id)
