import marimo

app = marimo.App(width="medium", app_title="Contact segments")

with app.setup:
    import subprocess
    import sys
    from pathlib import Path

    import marimo as mo
    import published


@app.cell
def _():
    mo.md("""
    # Contact segments

    Who is engaged, who is cooling, who is dormant; and from there to a tag on the service. Nothing is sent from this page: it
    ends with a plan, and with the command that would carry it out.
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
    tiers = con.execute(
        "select engagement_tier as tier, count(*) as addresses from marts.contact_engagement where account = ? group by 1 order by 2 desc",
        [account.value],
    ).df()
    clicks = con.execute(
        "select click_engagement_tier as tier, count(*) as addresses from marts.contact_engagement where account = ? "
        "group by 1 order by 2 desc",
        [account.value],
    ).df()
    machines = "Openings are those of machines, too; the second chart goes by clicks alone. Rates are of e-mails only."
    mo.vstack(
        [
            mo.md(f"## Engagement\n\n{machines}"),
            published.bars(tiers, "tier", "addresses", "Addresses by engagement tier"),
            published.bars(clicks, "tier", "addresses", "Addresses by engagement tier, by clicks alone"),
        ]
    )
    return (tiers,)


@app.cell
def _(account, con):
    domains = con.execute(
        """
        select domain, address_count, bounced_address_rate, open_of_sent_90d_rate, relative_open_90d, is_suspicious
        from marts.deliverability_by_domain where account = ? order by address_count desc limit 12
        """,
        [account.value],
    ).df()
    forms = dict.fromkeys(("bounced_address_rate", "open_of_sent_90d_rate"), published.percent) | {"relative_open_90d": published.decimal}
    published.table(domains, forms, label="By domain of the address")
    return


@app.cell
def _(account, con, tiers):
    lists = con.execute(
        "select distinct unnest(lists) as name from marts.contact_engagement where account = ? order by 1", [account.value]
    ).df()
    names = tiers["tier"].tolist()
    wanted = mo.ui.multiselect(names, value=[name for name in names if name == "dormant"], label="Tiers")
    on_list = mo.ui.dropdown(["any list", *lists["name"].tolist()], value="any list", label="On")
    quiet_days = mo.ui.slider(0, 720, step=30, value=0, label="Not active for at least … days", show_value=True)
    mo.vstack([mo.md("## The segment"), mo.hstack([wanted, on_list, quiet_days], justify="start", gap=2)])
    return on_list, quiet_days, wanted


@app.cell
def _(account, con, on_list, quiet_days, wanted):
    segment = con.execute(
        """
        select email, status, engagement_tier, registered_at::date::text as registered_on, last_sent_at::date::text as last_sent_on,
            last_opened_at::date::text as last_opened_on, sent_90d_count, opened_90d_count, coupon_count, redeemed_count
        from marts.contact_engagement
        where account = ? and list_contains(?, engagement_tier) and (? = 'any list' or list_contains(lists, ?))
            and coalesce(days_since_active, 100000) >= ? and status = 'active'
        order by email
        """,
        [account.value, wanted.value, on_list.value, on_list.value, quiet_days.value],
    ).df()
    mo.vstack([mo.md(f"**{len(segment):,} addresses** that may be mailed"), published.table(segment)])
    return (segment,)


@app.cell
def _():
    tag = mo.ui.text("dormant", label="Tag")
    plan = mo.ui.run_button(label="Show the plan")
    mo.vstack([mo.md("## Back to the service"), mo.hstack([tag, plan], justify="start")])
    return plan, tag


@app.cell
def _(account, plan, segment, tag):
    mo.stop(account.value is None, mo.md("*There is no account yet.*"))
    file = Path("segment.csv")
    command = ["marketing-sync", "push", "tags", "--from", str(file), "--account", account.value]
    shown = " ".join(command)
    mo.stop(
        not plan.value,
        mo.md(f"The plan costs no request and writes `{file}`. Adding `--apply` sends it:\n\n```sh\n{shown} --apply\n```"),
    )
    # A spreadsheet would take these for formulas; reading the file drops the apostrophe.
    emails = segment["email"].str.replace("^(?=[=+@-])", "'", regex=True)
    segment[["email"]].assign(email=emails, tag=tag.value, action="add").to_csv(file, index=False)
    told = subprocess.run([str(Path(sys.executable).parent / command[0]), *command[1:]], capture_output=True, text=True, check=False)
    mo.plain_text(told.stdout + told.stderr)
    return


if __name__ == "__main__":
    app.run()
