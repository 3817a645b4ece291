import marimo

app = marimo.App(width="medium", app_title="Data quality", css_file="published.css")

with app.setup:
    import marimo as mo
    import published


@app.cell
def _():
    mo.md("""
    # Data quality

    See how fresh and complete each table is, what could not be read, and what looks odd in the data itself.
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
        select subject, coverage_rate, age_hours, is_overdue, rejected_count, reason
        from marts.data_freshness where account = ? order by is_overdue desc, coverage_rate, age_hours desc, subject
        """,
        [account.value],
    ).df()
    newest = fresh["age_hours"].min()
    stopped = mo.callout(
        mo.md(f"**Syncing has stopped**: nothing has been read for {newest:,.0f} hours."),
        kind="danger",
    )
    complete, overdue = (
        int((fresh["coverage_rate"] >= 1).sum()),
        int(fresh["is_overdue"].fillna(False).sum()),
    )
    late = f"{overdue} {'is' if overdue == 1 else 'are'} overdue" if overdue else "none is overdue"
    _said = (
        f"{complete} of {published.plural(len(fresh), 'kind')} of data are complete, {late}."
        if len(fresh)
        else "Nothing was read yet."
    )
    names = {
        "subject": "Data", "coverage_rate": "Read", "age_hours": "Age, hours", "is_overdue": "Overdue",
        "rejected_count": "Not readable", "reason": "Why",
    }  # fmt: skip
    _listed = fresh.assign(subject=fresh["subject"].str.replace("_", " ")).rename(columns=names)
    mo.vstack(
        [
            published.heading(_said),
            *([stopped] if newest > published.FRESH_HOURS else []),
            mo.hstack(
                [
                    mo.stat(f"{len(fresh)}", label="tables, and readings by contact"),
                    mo.stat(f"{complete}", label="complete"),
                    mo.stat(f"{overdue}", label="overdue"),
                    mo.stat(
                        f"{fresh['rejected_count'].sum():,.0f}",
                        label="entries that could not be read",
                    ),
                ],
                justify="start",
                gap=1,
                wrap=True,
            ),
            published.table(
                _listed,
                {"Read": published.share, "Age, hours": published.rating},
                wide={"Why": 360} if fresh["reason"].notna().any() else None,
            ),
        ]
    )
    return (fresh,)


@app.cell
def _(account, con):
    asked = con.execute(
        """
        select least(floor(date_diff('hour', timeline_asked_at, now()) / 24), 30)::int as days, count(*) as contacts
        from sync.contact_coverage semi join (from source.contacts where _deleted_at is null) using (account, contact_id)
        where account = ? and timeline_asked_at is not null group by 1 order by 1
        """,
        [account.value],
    ).df()
    asked["age"] = asked["days"].map(
        lambda days: (
            "less than a day"
            if days == 0
            else "30 days or more"
            if days == 30
            else f"{days} day{'s' if days > 1 else ''}"
        )
    )
    published.bars(
        asked,
        "age",
        "contacts",
        "Age of timelines",
        "contacts, by days since their timeline was requested",
    )
    return


@app.cell
def _(account, con, fresh):
    mo.stop(fresh.empty)  # without readings, nothing is known
    odd = con.execute(
        """
        with contacts as (select * from source.contacts where account = $a and _deleted_at is null),
            timelines as (from sync.contact_coverage semi join contacts using (account, contact_id)),
            campaigns as (select * from marts.campaign_performance where account = $a),
            reviews as (select * from source.online_reviews where account = $a),
            spellings as (select email_normalized from contacts group by 1 having count(distinct email) > 1)
        select 'active contacts without an address' as what, if($is_kept, count(*), null) as "rows" from contacts where coalesce(email, '') = '' and status = 'active'
        union all select 'addresses in several spellings', if($is_kept, count(*), null) from spellings
        union all select 'contacts whose timeline the service shortens', count(*) from timelines where timeline_served < timeline_total
        union all select 'campaigns with more clickers than opened', count(*) from campaigns where clicker_count > opened_count
        union all select 'campaigns whose counts and percentages disagree', count(*) from campaigns where is_percent_inconsistent
        union all select 'ratings that are not a number', count(*) from reviews where rating is null and rating_raw is not null
        order by 2 desc nulls last
        """,
        # a masked copy has hashes instead of addresses, or none
        {"a": account.value, "is_kept": published.facts(con).personal_data == "keep"},
    ).df()
    found = odd[odd["rows"] > 0]
    first = (
        f": {published.number(found['rows'].iloc[0])} {found['what'].iloc[0]}" if len(found) else ""
    )
    mo.vstack(
        [
            published.heading(
                f"{len(found)} of {odd['rows'].count()} checks found something odd{first}.",
                "Most oddities come from the service’s own data.",
            ),
            published.table(
                odd.rename(columns={"what": "Check", "rows": "Count"}), wide={"Check": 380}
            ),
        ]
    )
    return


@app.cell
def _(account, con, fresh):
    mo.stop(fresh.empty)  # without readings, nothing is known
    rejected = con.execute(
        """
        select table_name, reason, count(*) as entries, strftime(max(requested_at), '%Y-%m-%d %H:%M') as last_seen
        from sync.rejected_records where account = ? group by 1, 2 order by 3 desc
        """,
        [account.value],
    ).df()
    unknown = con.execute(
        "select table_name, field, noticed_at as first_seen_at from sync.schema_changes "
        "where account = ? and change = 'new field' order by 1, 2",
        [account.value],
    ).df()
    entries = int(rejected["entries"].sum())
    unread = (
        f"{published.plural(entries, 'entry', 'entries')} could not be read"
        if entries
        else "Every entry could be read"
    )
    unnamed = (
        f"the service sends {published.plural(len(unknown), 'field')} without a column"
        if len(unknown)
        else "every field has a column"
    )
    mo.vstack(
        [
            published.heading(f"{unread}; {unnamed}."),
            mo.ui.tabs(
                {
                    f"unreadable entries ({rejected['entries'].sum():,.0f})": published.table(
                        published.spelled(rejected)
                    )
                    if len(rejected)
                    else mo.md("*Everything could be read.*"),
                    f"unknown fields ({len(unknown)})": published.table(published.spelled(unknown))
                    if len(unknown)
                    else mo.md("*Every field that the service sends has a column.*"),
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
    _said = (
        mo.md("The run with the outcome *publishing* wrote this file before the run ended.")
        if "publishing" in set(runs["outcome"])
        else None
    )
    bad = int((~runs["outcome"].isin(["done", "publishing"])).sum())
    went = (
        f"The last {'run' if len(runs) == 1 else f'{len(runs)} runs'} succeeded."
        if not bad
        else f"{bad} of the last {len(runs)} runs did not succeed."
    )
    _listed = published.spelled(runs)
    mo.vstack(
        [
            published.heading(went if len(runs) else "No run has been recorded yet."),
            *([_said] if _said else []),
            published.table(_listed, wide={"Message": 360}),
        ]
    )
    return


if __name__ == "__main__":
    app.run()
