"""A warehouse of any size for testing the models, made in DuckDB: no request, no archive, nobody in it
exists.

Uneven like the real thing: a few lists hold most contacts, a few contacts most events; two accounts in
different time zones. The rows are what the loading would have written; `a_night_later` changes 1 % of the
contacts."""

from pathlib import Path

import duckdb

from warehouse.schema import ensure_schema
from warehouse.tables import TABLES

#: Evening of the last reading.
_NOW = "timestamptz '2026-11-20 02:30:00+00'"
_NIGHT = f"({_NOW} - interval 1 day)"
_CAMPAIGNS = 240


def make(path: Path, contacts: int, events: int) -> None:
    """Write a new warehouse file with so many contacts and about so many timeline events."""
    with duckdb.connect(str(path)) as connection:
        connection.execute("set timezone = 'UTC'")
        connection.execute("set memory_limit = '2GB'")
        connection.execute("select setseed(0.42)")
        ensure_schema(connection)
        for statement in (*_small(), *_contacts(contacts), *_timelines(contacts, events), *_others(contacts)):
            connection.execute(statement)


def _small() -> list[str]:
    accounts = "(values ('main', 'Europe/Berlin'), ('harbor', 'America/New_York')) as a(account, zone)"
    return [
        "insert into source.business by name select account, zone as timezone, 'b' as business_name "
        f"from {accounts}",
        f"""insert into sync.coverage by name select account, name as table_name, 'all' as scope, {_NOW} as as_of, true as is_complete
            from {accounts}, (select unnest([{", ".join(repr(name) for name in TABLES)}]) as name)""",
        f"""insert into source.lists by name select account, list_id, 'List ' || list_id as name, {_NOW} - interval 900 day as created_at,
            {_NIGHT} as _first_seen_at, {_NIGHT} as _changed_at from {accounts}, (select unnest(range(1, 7)) as list_id)""",
        f"""insert into source.campaigns by name
            select account, number as campaign_id, case when number % 20 = 0 then 'automated' else 'standard' end as type,
                case when number % 20 = 0 then 'automation' else 'sent' end as status,
                case when number % 20 = 0 then 'Automatic ' || number when number % 15 = 1 then 'Monthly news' else 'Subject ' || number end
                    as subject,
                {_NOW} - interval 730 day + to_hours(73 * number) - interval 3 day as created_at,
                {_NIGHT} as _first_seen_at, {_NIGHT} as _changed_at
            from {accounts}, (select unnest(range(1, {_CAMPAIGNS + 1})) as number)""",
    ]


def _contacts(count: int) -> list[str]:
    """Nineteen of twenty in `main`; half of them on one list; one address in ten on two lists."""
    return [
        f"""create temp table person as
            select i as contact_id, case when i % 20 = 7 then 'harbor' else 'main' end as account,
                1 + floor(6 * pow(random(), 2.2))::bigint as list_id,
                'p' || case when i % 10 = 3 then i - 1 else i end || '@'
                    || ['mail.example.com', 'inbox.example.org', 'old.example.net', 'home.example.com', 'x' || (i % 400) || '.example.org']
                        [1 + floor(5 * pow(random(), 1.8))::int] as email,
                {_NOW} - to_seconds((86400 * 760 * pow(random(), 0.7))::bigint) as registered_at,
                least(3, floor(pow(random(), 4) * 4 + 0.1))::int as mood
            from range({count}) t(i)""",
        f"""insert into source.contacts by name
            select account, list_id, contact_id, email, email as email_normalized, registered_at,
                ['active', 'unsubscribed', 'bounced', 'unconfirmed'][1 + mood] as status, [1, 2, 3, 0][1 + mood]::bigint as status_code,
                case when contact_id % 3 = 0 then json_object('1', 'Name ' || contact_id, '2', 'City') end as custom_fields,
                {_NIGHT} as _first_seen_at, {_NIGHT} as _changed_at, case when contact_id % 97 = 0 then {_NIGHT} end as _deleted_at
            from person""",
        f"""insert into sync.contact_coverage by name
            select account, contact_id, email, email as email_normalized,
                {_NIGHT} as timeline_asked_at, 1 as timeline_times_asked, {_NIGHT} as coupon_asked_at
            from person""",
    ]


def _sent(campaign: str) -> str:
    return f"({_NOW} - interval 730 day + to_hours(73 * ({campaign})))"


_TEXT = "%Y-%m-%d %I:%M %p"


def _timelines(contacts: int, events: int) -> list[str]:
    """Messages, openings and clicks fall off steeply: most contacts open nothing. Dates are local text."""
    zone = "case when account = 'harbor' then 'America/New_York' else 'Europe/Berlin' end"
    local = f"strftime(timezone({zone}, {{}}), '{_TEXT}')"
    details = f"""json_array(
        json_object('key', 'subject', 'label', 'Subject', 'value', subject),
        json_object('key', 'send-date', 'label', 'Send Date', 'value', {local.format("sent_at")}),
        json_object('key', 'open-date', 'label', 'Open Date', 'value', case when is_opened then {local.format("opened_at")} else 'N/A' end),
        json_object('key', 'links-clicked', 'label', 'Links Clicked', 'value', (case when is_opened then clicks else 0 end)::varchar))"""
    return [
        f"""create temp table sending as
            select account, contact_id, number, {_sent("number")} as sent_at, random() < 0.8 / (1 + contact_id % 7) as is_opened,
                floor(4 * pow(random(), 3))::bigint as clicks, {_sent("number")} + to_seconds((90000 * pow(random(), 3))::bigint)
                    as opened_at,
                case when number % 15 = 1 then 'Monthly news' else 'Subject ' || number end as subject
            from (
                select account, contact_id,
                    1 + floor({_CAMPAIGNS} * pow(random(), 0.6))::bigint as number
                from (
                    select account, contact_id,
                        unnest(range(floor({0.8 * events / contacts} * 3.3 * pow(random(), 1.5))::bigint))
                    from person
                )
            ) where number % 20 <> 0""",
        f"""insert into source.timeline_events by name
            select account, contact_id, md5('m' || contact_id || '/' || number || '/' || row_number() over ()) || '-0' as event_key,
                'email-campaign-sent' as key, subject as snippet, sent_at as occurred_at, {details} as details,
                {_NIGHT} as _first_seen_at, {_NIGHT} as _changed_at from sending""",
        f"""insert into source.timeline_events by name
            select account, contact_id, md5('s' || contact_id) || '-0' as event_key, 'list-subscription' as key, 'Subscribed' as snippet,
                registered_at as occurred_at, {_NIGHT} as _first_seen_at, {_NIGHT} as _changed_at from person""",
        f"""insert into source.timeline_visits by name
            select account, contact_id, md5('v' || contact_id || '/' || number || '/' || i || row_number() over ()) || '-0' as visit_key,
                'https://shop.example.com/' || (number % 9) as link, 'campaign-' || number as utm_campaign, 'newsletter' as utm_source,
                case when i = 2 then 'social' else 'email' end as utm_medium, opened_at + to_minutes(7 * i + 1) as visited_at,
                {_NIGHT} as _first_seen_at, {_NIGHT} as _changed_at
            from (select *, unnest(range(clicks)) as i from sending where is_opened)""",
        f"""insert into source.timeline_automations by name
            select account, contact_id, md5('a' || contact_id || '/' || n) || '-0' as automation_key, 'Automation ' || n as name,
                case when n % 4 = 3 then 'sms' else 'email' end as type, registered_at + to_days(n * 3) as triggered_at,
                json_array(json_object('key', 'subject', 'value', 'Automatic ' || 20 * (n + 1)),
                    json_object('key', 'send-date', 'value', {local.format("registered_at + to_days(n * 3)")}),
                    json_object('key', 'open-date', 'value', 'N/A')) as details,
                {_NIGHT} as _first_seen_at, {_NIGHT} as _changed_at
            from (select *, unnest(range(contact_id % 3 // 2 * 2)) as n from person)""",
    ]


def _others(contacts: int) -> list[str]:
    return [
        f"""insert into source.coupons by name
            select account, contact_id as coupon_id, email, email as email_normalized,
                'CODE' || contact_id % 7 as coupon_code, contact_id % 5 = 0 as is_redeemed,
                case when contact_id % 5 = 0 then date '2026-11-01' - (contact_id % 300)::int end as redeemed_on,
                {_NIGHT} as _first_seen_at, {_NIGHT} as _changed_at from person where contact_id % 8 = 1""",
        f"""insert into source.campaign_stats by name
            select account, campaign_id, date '2026-11-20' - d::int as observed_on, 1000 - 9 * d as opened_count,
                3000 + 9 * d as unopened_count,
                40 as bounced_count, 9 as unsubscribed_count, 25.0 as opened_percent, {_NIGHT} as _first_seen_at, {_NIGHT} as _changed_at
            from source.campaigns, (select unnest(range(60)) as d)""",
        f"""insert into source.campaign_links by name
            select account, campaign_id, 'https://shop.example.com/' || n as url, date '2026-11-20' - d::int as observed_on,
                'Text' as message,
                50 - d // 2 as clicker_count, 70 - d as click_count, {_NIGHT} as _first_seen_at, {_NIGHT} as _changed_at
            from source.campaigns, (select unnest(range(60)) as d), (select unnest(range(4)) as n)""",
        f"""insert into source.campaign_clickers by name
            select account, number as campaign_id, 'https://shop.example.com/' || (number % 9) as url, email, email as email_normalized,
                sum(clicks) as click_count,
                {_NIGHT} as _first_seen_at, {_NIGHT} as _changed_at
            from sending join person using (account, contact_id) where is_opened and clicks > 0 group by all""",
        f"""insert into source.goals by name
            select account, goal_id, 'Goal ' || goal_id as name, 'Fixed' as value_type, 20 as value, 'Link(s) Clicked' as event_type,
                'Any of the links is clicked' as event_link_rule, ['https://shop.example.com/' || goal_id] as links,
                {_NIGHT} as _first_seen_at, {_NIGHT} as _changed_at
            from (values ('main'), ('harbor')) as a(account), (select unnest(range(4)) as goal_id)""",
        f"""insert into source.direct_reviews by name
            select account, contact_id as review_id, email, email as email_normalized,
                'Cold soup' as inquiry, ['Good', 'Bad'][1 + contact_id % 2] as rating,
                {_NOW} - to_hours(contact_id % 9000) as reviewed_at, {_NIGHT} as _first_seen_at, {_NIGHT} as _changed_at
            from person where contact_id % 50 < 2""",
    ]


def a_night_later(path: Path) -> None:
    """1 % of the contacts change: statuses, events and visits, a few new and deleted contacts."""
    moment = f"({_NOW} + interval 1 day)"
    details = """json_array(json_object('key', 'subject', 'value', 'Subject 239'),
        json_object('key', 'send-date', 'value', '2026-11-20 03:00 PM'), json_object('key', 'open-date', 'value', '2026-11-20 04:00 PM'),
        json_object('key', 'links-clicked', 'value', '1'))"""
    with duckdb.connect(str(path)) as connection:
        for statement in (
            "set timezone = 'UTC'",
            f"update sync.coverage set as_of = {moment}",
            f"""update source.contacts set _changed_at = {moment}, status = 'unsubscribed', status_code = 2
                where contact_id % 200 = 5 and _deleted_at is null""",
            f"""update source.contacts set _changed_at = {moment}, _deleted_at = {moment}
                where contact_id % 1000 = 11 and _deleted_at is null""",
            f"""insert into source.contacts by name select * replace (contact_id + 100_000_000 as contact_id, {moment} as _first_seen_at,
                {moment} as _changed_at, {moment} as registered_at, 'new' || email as email, 'new' || email as email_normalized)
                from source.contacts where contact_id % 1000 = 21 and _deleted_at is null""",
            f"""insert into source.timeline_events by name select account, contact_id, md5('n' || contact_id) || '-0' as event_key,
                'email-campaign-sent' as key, 'Subject 239' as snippet, timestamptz '2026-11-20 15:00+00' as occurred_at,
                {details} as details, {moment} as _first_seen_at, {moment} as _changed_at
                from source.contacts where contact_id % 100 = 5""",
            f"""insert into source.timeline_visits by name select account, contact_id, md5('w' || contact_id) || '-0' as visit_key,
                'https://shop.example.com/1' as link, 'campaign-239' as utm_campaign, 'newsletter' as utm_source, 'email' as utm_medium,
                timestamptz '2026-11-20 16:05+00' as visited_at, {moment} as _first_seen_at, {moment} as _changed_at
                from source.contacts where contact_id % 1000 = 5""",
        ):
            connection.execute(statement)
