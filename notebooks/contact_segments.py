import marimo

app = marimo.App(width="medium", app_title="Contact segments", css_file="published.css")

with app.setup:
    import subprocess
    import sys
    from pathlib import Path

    import marimo as mo
    import pandas as pd
    import published


@app.cell
def _():
    mo.md("""
    # Contact segments

    See which contacts are engaged, cooling or dormant, select a segment of them, and tag it on the service. This page sends
    nothing: it ends with a plan, and with the command that carries it out.
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
    def by_tier(column):
        sql = (
            f"select {column} as tier, count(*) as addresses from marts.contact_engagement "
            "where account = "
            "? group by 1"
        )
        counts = dict(con.execute(sql, [account.value]).fetchall())
        order = [*published.TIERS, *sorted(set(counts) - set(published.TIERS))]
        return pd.DataFrame(
            [(tier, counts[tier]) for tier in order if tier in counts],
            columns=["tier", "addresses"],
        )

    tiers, clicks = by_tier("engagement_tier"), by_tier("click_engagement_tier")

    def of(frame, tier):
        return int(frame.set_index("tier")["addresses"].get(tier, 0))

    everybody = int(tiers["addresses"].sum())
    share = published.share(of(tiers, "engaged") / everybody if everybody else None)
    _said = (
        f"{of(tiers, 'engaged'):,} of {everybody:,} people are engaged ({share}), "
        f"{of(tiers, 'dormant'):,} are dormant"
    )
    by_clicks = (
        f"counting clicks only, {of(clicks, 'engaged'):,} are engaged and "
        f"{of(clicks, 'dormant'):,} dormant"
    )
    how_counted = f"{published.MACHINE_OPENS} {published.TIERS_NOTE}"
    mo.vstack(
        [
            published.heading(
                f"{_said}; {by_clicks}." if everybody else "There are no contacts yet.", how_counted
            ),
            published.bars(tiers, "tier", "addresses", "By tier", "addresses"),
            published.bars(
                clicks, "tier", "addresses", "By tier, counting clicks only", "addresses"
            ),
        ]
    )
    return (tiers,)


@app.cell
def _(account, con):
    domains = con.execute(
        """
        select coalesce(domain, 'Domain ' || row_number() over (order by address_count desc)) as "Domain",
            address_count as "Addresses", bounced_address_rate as "Bounced",
            open_of_sent_90d_rate as "Opened, 90 days", relative_open_90d as "Compared with all",
            case when sent_90d_count >= 50 then is_suspicious end as "Far fewer openings"
        from marts.deliverability_by_domain where account = ? order by address_count desc, domain limit 12
        """,
        [account.value],
    ).df()
    mo.stop(domains.empty)
    suspicious = domains.loc[domains["Far fewer openings"].fillna(False).astype(bool), "Domain"]
    worst = domains.sort_values("Bounced", ascending=False, na_position="last").iloc[0]
    rate = published.known(worst["Bounced"])
    _said = (
        f"Addresses at {published.plural(len(suspicious), 'domain')} open far fewer messages than others: "
        f"{', '.join(suspicious)}."
        if len(suspicious)
        else f"{published.shown(worst['Domain'])} has the highest bounce rate: {published.share(rate)} of "
        f"{worst['Addresses']:,.0f} addresses."
        if rate
        else "No address at these domains bounces."
    )
    forms = dict.fromkeys(("Bounced", "Opened, 90 days"), published.share) | {
        "Compared with all": published.times
    }
    mo.vstack(
        [
            published.heading(
                _said,
                "The domains with the most addresses, up to twelve. “Far fewer openings” is for domains "
                "with at least 50 e-mails in 90 days.",
            ),
            published.table(domains, forms),
        ]
    )
    return


@app.cell
def _(account, con, tiers):
    lists = con.execute(
        "select distinct unnest(lists) as name from marts.contact_engagement where account = ? order by 1",
        [account.value],
    ).df()
    names = tiers["tier"].tolist()
    wanted = mo.ui.multiselect(
        names, value=[name for name in names if name == "dormant"], label="Tiers"
    )
    on_list = mo.ui.dropdown(["any list", *lists["name"].tolist()], value="any list", label="List")
    quiet_days = mo.ui.slider(
        0, 720, step=30, value=0, label="Days without activity, at least", show_value=True
    )
    mo.vstack(
        [
            mo.md("## Select a segment"),
            mo.hstack([wanted, on_list, quiet_days], justify="start", gap=2, wrap=True),
        ]
    )
    return on_list, quiet_days, wanted


@app.cell
def _(account, con, on_list, quiet_days, wanted):
    registered_on, sent_on, opened_on = (
        published.day_of(con, account.value, moment)
        for moment in ("registered_at", "last_sent_at", "last_opened_at")
    )
    segment = con.execute(
        f"""
        select email, status, engagement_tier, {registered_on}::text as registered_on, {sent_on}::text as last_sent_on,
            {opened_on}::text as last_opened_on, sent_90d_count, opened_90d_count, coupon_count, redeemed_count
        from marts.contact_engagement
        where account = ? and list_contains(?, engagement_tier) and (? = 'any list' or list_contains(lists, ?))
            and coalesce(days_since_active, if(engagement_tier = 'unread', 0, 100000)) >= ? and status = 'active'
        order by email
        """,
        [account.value, wanted.value, on_list.value, on_list.value, quiet_days.value],
    ).df()
    headings = {
        name: name.replace("coupon_count", "coupons")
        .removesuffix("_count")
        .replace("_", " ")
        .replace(" 90d", ", 90 days")
        .capitalize()
        for name in segment
    }
    may_be = (
        f"{published.plural(len(segment), 'address', 'addresses')} in this segment can be mailed."
    )
    mo.vstack([published.heading(may_be), published.table(segment.rename(columns=headings))])
    return (segment,)


@app.cell
def _():
    tag = mo.ui.text("dormant", label="Tag")
    plan = mo.ui.run_button(label="Show the plan")
    mo.vstack([mo.md("## Tag the segment"), mo.hstack([tag, plan], justify="start", wrap=True)])
    return plan, tag


@app.cell
def _(account, con, plan, segment, tag):
    mo.stop(account.value is None, mo.md("*There is no account yet.*"))
    mo.stop(
        published.facts(con).personal_data != "keep",
        mo.md(
            "*The published file has no addresses, so this page can't tag any. Use `marketing-sync push tags "
            "--sql`, which reads them from the warehouse.*"
        ),
    )
    file = Path("segment.csv")
    command = ["marketing-sync", "push", "tags", "--from", str(file), "--account", account.value]
    shown = " ".join(command)
    mo.stop(
        not plan.value,
        mo.md(
            f"**Show the plan** writes `{file}` and sends no request. To send the tags afterwards, run:"
            f"\n\n```sh\n{shown} --apply\n```"
        ),
    )
    # A spreadsheet would take these for formulas; reading the file drops the apostrophe.
    emails = segment["email"].str.replace("^(?=[=+@-])", "'", regex=True)
    segment[["email"]].assign(email=emails, tag=tag.value, action="add").to_csv(file, index=False)
    told = subprocess.run(
        [str(Path(sys.executable).parent / command[0]), *command[1:]],
        capture_output=True,
        text=True,
        check=False,
    )
    mo.plain_text(told.stdout + told.stderr)
    return


if __name__ == "__main__":
    app.run()
