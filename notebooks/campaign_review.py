import marimo

app = marimo.App(width="medium", app_title="Campaign review", css_file="published.css")

with app.setup:
    import marimo as mo
    import published


@app.cell
def _():
    mo.md("""
    # Campaign review

    Compare each campaign with the account's other campaigns of the 90 days before it. See how its openings and clicks grew, which
    links were clicked, and which times of sending get the most openings.
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
    sent_on = published.day_of(con, account.value, "coalesce(sent_at, created_at)")
    days = published.period_choice(
        con,
        f"select min({sent_on}), max({sent_on}) from marts.campaign_performance "
        "where account = ? and type = 'standard' and sent_count > 0",
        account.value,
        "Sent between",
        days=365,
    )
    mo.stop(days is None, mo.md("*No campaign has been sent yet.*"))
    days
    return days, sent_on


@app.cell
def _(account, con, days, sent_on):
    first, last = published.period(days)
    campaigns = con.execute(
        f"""
        select campaign_id, coalesce(nullif(subject, ''), '(no subject)') as subject, nullif(name, subject) as name,
            {sent_on} as sent_on, sent_count, delivered_count, opened_count, clicker_count, open_rate, open_rate_over_median,
            click_rate, click_rate_over_median, bounce_rate, unsubscribe_rate, is_percent_inconsistent
        from marts.campaign_performance
        where account = ? and type = 'standard' and sent_count > 0 and {sent_on} between ? and ?
        order by coalesce(sent_at, created_at) desc
        """,
        [account.value, first, last],
    ).df()
    mo.stop(campaigns.empty, mo.md("*No campaign was sent on these days.*"))

    def rate(name):
        known = campaigns.dropna(subset=["delivered_count", name])
        delivered = known["delivered_count"].sum()
        return published.share(known[name].sum() / delivered if delivered else None)

    delivered = published.number(campaigns["delivered_count"].sum(min_count=1))
    said = (
        f"{published.plural(len(campaigns), 'campaign')}, {delivered} messages delivered: "
        f"{rate('opened_count')} opened, {rate('clicker_count')} clicked."
    )
    compared = campaigns.dropna(subset=["open_rate_over_median"]).sort_values(
        "open_rate_over_median"
    )
    outliers = (
        [
            f"{word}: “{row.subject}”, sent {published.formatting.format_day(row.sent_on)}: "
            f"{published.share(row.open_rate)} opened, "
            f"{published.points(row.open_rate_over_median)} compared with the median."
            for word, row in (("Strongest", compared.iloc[-1]), ("Weakest", compared.iloc[0]))
            if len(compared) > 1
        ]
        if len(compared) > 1
        else []
    )
    mo.vstack([published.heading(said), published.sentences(outliers)])
    return (campaigns,)


@app.cell
def _(campaigns):
    names = {
        "subject": "Campaign", "name": "Name", "sent_on": "Sent on", "sent_count": "Sent",
        "open_rate": "Opened", "open_rate_over_median": "Opened, against usual",
        "click_rate": "Clicked", "click_rate_over_median": "Clicked, against usual",
        "bounce_rate": "Bounced", "unsubscribe_rate": "Unsubscribed", "is_percent_inconsistent": "Counts disagree",
    }  # fmt: skip
    forms = {
        names[name]: published.share
        for name in ("open_rate", "click_rate", "bounce_rate", "unsubscribe_rate")
    }
    forms |= {
        names[name]: published.points
        for name in ("open_rate_over_median", "click_rate_over_median")
    }
    listed = (
        campaigns[list(names)]
        .rename(columns=names)
        .assign(**{"Sent on": campaigns["sent_on"].dt.date})
    )
    choice = published.table(
        listed,
        forms,
        selection="single",
        initial_selection=[0],
        freeze_columns_left=[],
        label="Select a campaign to see its figures below",
    )
    note = (
        "Without a known send time, “Sent on” is the day of creation. Rates are shares of the delivered "
        "messages. “Against usual” is the difference from the median of "
        f"the campaigns in the 90 days before, in percentage points. {published.MACHINE_OPENS} "
        "“Counts disagree” marks campaigns whose percentage, as the service states it, doesn’t match its "
        "own counts."
    )
    mo.vstack([choice, published.note(note)])
    return (choice,)


@app.cell
def _(account, campaigns, choice, con):
    mo.stop(choice.value.empty, mo.md("*Select a campaign above.*"))
    campaign_id = int(campaigns["campaign_id"].iloc[choice.value.index[0]])
    one = (
        con.execute(
            "select * from marts.campaign_performance where account = ? and campaign_id = ?",
            [account.value, campaign_id],
        )
        .df()
        .iloc[0]
    )

    def figure(name, label):
        rate, median = (
            published.known(one[column]) for column in (f"{name}_rate", f"median_{name}_rate_90d")
        )
        return mo.stat(
            published.share(rate),
            label=label,
            caption=f"median of the 90 days before: {published.share(median)}",
        )

    def total(column):
        return published.number(one[column])

    rest = published.known(one.open_rate_over_median)
    against = f", {published.points(rest)} compared with the median" if rest is not None else ""
    opened_by = f"{published.share(published.known(one.open_rate))} opened{against}"
    mo.vstack(
        [
            published.heading(f"“{one.subject or '(no subject)'}”: {opened_by}"),
            mo.hstack(
                [
                    mo.stat(
                        total("delivered_count"),
                        label="delivered",
                        caption=f"{total('bounced_count')} bounced",
                    ),
                    figure("open", "opened"),
                    figure("click", "clicked"),
                    mo.stat(total("unsubscribed_count"), label="unsubscribed"),
                ],
                justify="start",
                gap=1,
                wrap=True,
            ),
        ]
    )
    return (campaign_id,)


@app.cell
def _(account, campaign_id, con):
    nights = con.execute(
        """
        select observed_on, opened_count, click_count from marts.campaign_daily
        where account = ? and campaign_id = ? order by observed_on
        """,
        [account.value, campaign_id],
    ).df()
    grown = nights.rename(columns={"opened_count": "opened", "click_count": "clicks"}).melt(
        "observed_on", var_name="what", value_name="n"
    )
    published.lines(
        grown,
        "observed_on",
        "n",
        "Opened messages and clicks",
        "total at each nightly sync",
        color="what",
    )
    return


@app.cell
def _(account, campaign_id, con):
    links = con.execute(
        """
        select coalesce(nullif(link_text, ''), url, 'Link ' || click_rank) as link, clicker_count
        from marts.campaign_link_clicks
        where account = ? and campaign_id = ? and is_current order by clicker_count desc nulls last, link limit 15
        """,
        [account.value, campaign_id],
    ).df()
    published.bars(links, "link", "clicker_count", "Most clicked links", "addresses, by link")
    return


@app.cell
def _(account, con):
    hours = con.execute(
        """
        select weekday || ' ' || lpad(hour::text, 2, '0') || ':00' as sent, open_rate, campaign_count
        from marts.send_time_performance where account = ? and open_rate is not null and not is_small_sample
        order by open_rate desc, sent limit 12
        """,
        [account.value],
    ).df()
    mo.stop(hours.empty, mo.md("*No time of sending has enough campaigns to compare.*"))
    best = hours.iloc[0]
    mo.vstack(
        [
            published.heading(
                f"In all years, messages sent on {best.sent} are opened most: {published.share(best.open_rate)}.",
                f"Based on {published.plural(int(best.campaign_count), 'campaign')}. With few campaigns, the "
                "difference may be chance. Times with a single campaign are left out.",
            ),
            published.bars(
                hours,
                "sent",
                "open_rate",
                "Opened in all years, by weekday and hour of sending",
                "share of delivered messages, best times first",
                form=".0%",
            ),
        ]
    )
    return


if __name__ == "__main__":
    app.run()
