import marimo

app = marimo.App(width="medium", app_title="Data quality")

with app.setup:
    import marimo as mo
    import published


@app.cell
def _():
    mo.md("""
    # Data quality

    How fresh and complete every table is, what could not be read, and what looks odd in the data itself.
    """)
    return


@app.cell
def _():
    con = published.connect()
    account = published.account_choice(con)
    account
    return account, con


@app.cell
def _(account, con):
    fresh = con.execute(
        """
        select subject as "what", coverage_rate, age_hours, is_overdue, rejected_count, reason
        from marts.data_freshness where account = ? order by is_overdue desc, coverage_rate, age_hours desc
        """,
        [account.value],
    ).df()
    newest = fresh["age_hours"].min()
    stopped = mo.callout(mo.md(f"**Syncing has stopped**: nothing was read for {newest:,.0f} hours."), kind="danger")
    overdue = int(fresh["is_overdue"].fillna(False).sum())
    mo.vstack(
        [
            mo.md("## Fresh and complete"),
            *([stopped] if newest > published.FRESH_HOURS else []),
            mo.hstack(
                [
                    mo.stat(f"{len(fresh)}", label="tables, and readings by contact"),
                    mo.stat(f"{(fresh['coverage_rate'] >= 1).sum()}", label="complete"),
                    mo.stat(f"{overdue}", label="overdue"),
                    mo.stat(f"{fresh['rejected_count'].sum():,.0f}", label="entries that could not be read"),
                ],
                justify="start",
                gap=2,
                wrap=True,
            ),
            published.table(fresh, {"coverage_rate": published.percent, "age_hours": published.decimal}, page_size=12),
        ]
    )
    return


@app.cell
def _(account, con):
    asked = con.execute(
        """
        select least(floor(date_diff('hour', timeline_asked_at, now()) / 24), 30)::int as days, count(*) as contacts
        from sync.contact_coverage where account = ? and timeline_asked_at is not null group by 1 order by 1
        """,
        [account.value],
    ).df()
    asked["age"] = asked["days"].map(
        lambda days: "less than a day" if days == 0 else "30 days or more" if days == 30 else f"{days} day{'s' if days > 1 else ''}"
    )
    published.bars(asked, "age", "contacts", "Contacts by age of their timeline")
    return


@app.cell
def _(account, con):
    odd = con.execute(
        """
        with contacts as (select * from source.contacts where account = $a),
            people as (select * from marts.contact_engagement where account = $a),
            timelines as (select * from sync.contact_coverage where account = $a),
            campaigns as (select * from marts.campaign_performance where account = $a),
            reviews as (select * from source.online_reviews where account = $a),
            spellings as (select lower(email) from contacts group by 1 having count(distinct email) > 1)
        select 'addresses on several lists' as what, count(*) as "rows" from people where list_count > 1
        union all select 'active contacts without an address', count(*) from contacts where coalesce(email, '') = '' and status = 'active'
        union all select 'addresses written in different case', count(*) from spellings
        union all select 'contacts whose timeline the service cuts', count(*) from timelines where timeline_served < timeline_total
        union all select 'campaigns with more clickers than opened', count(*) from campaigns where clicker_count > opened_count
        union all select 'campaigns whose counts and percentages disagree', count(*) from campaigns where is_percent_inconsistent
        union all select 'ratings that are not a number', count(*) from reviews where rating is null and rating_raw is not null
        order by 2 desc
        """,
        {"a": account.value},
    ).df()
    mo.vstack([mo.md("## Odd, and worth knowing"), published.table(odd)])
    return


@app.cell
def _(account, con):
    rejected = con.execute(
        """
        select table_name, reason, count(*) as entries, strftime(max(requested_at), '%Y-%m-%d %H:%M') as last_seen
        from sync.rejected_records where account = ? group by 1, 2 order by 3 desc
        """,
        [account.value],
    ).df()
    unknown = con.execute(
        "select table_name, field, first_seen_at from sync.unknown_fields where account = ? order by 1, 2", [account.value]
    ).df()
    mo.vstack(
        [
            mo.md("## Not read"),
            mo.ui.tabs(
                {
                    f"entries ({rejected['entries'].sum():,.0f})": published.table(rejected)
                    if len(rejected)
                    else mo.md("*Everything could be read.*"),
                    f"unknown fields ({len(unknown)})": published.table(unknown)
                    if len(unknown)
                    else mo.md("*The service sends nothing that has no column.*"),
                }
            ),
        ]
    )
    return


@app.cell
def _(con):
    runs = con.sql("""
        select strftime(started_at, '%Y-%m-%d %H:%M') as started_at, job, outcome, request_count,
            date_diff('second', started_at, ended_at) as seconds, message
        from sync.runs order by started_at desc limit 30
    """).df()
    said = mo.md("The run that is *publishing* wrote this copy, ahead of its own end.") if "publishing" in set(runs["outcome"]) else None
    mo.vstack([mo.md("## The last runs"), *([said] if said else []), published.table(runs, wrapped_columns=["message"])])
    return


if __name__ == "__main__":
    app.run()
