import marimo

app = marimo.App(width="medium", app_title="Campaign review")

with app.setup:
    import html

    import marimo as mo
    import published


@app.cell
def _():
    mo.md("""
    # Campaign review

    How each campaign did against the account's campaigns of the 90 days up to it, how it grew from day to day, what was clicked,
    and when mails are opened most. Rates are of delivered mails. Machines open mails, too, such as Apple Mail's privacy protection:
    an open rate compares campaigns, it does not count readers, and the click rate is surer. Where `is_percent_inconsistent` is set,
    the service states another share than its own counts give.
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
    campaigns = con.execute(
        """
        select campaign_id, subject, sent_at::date::text as sent_on, sent_count, open_rate, open_rate_over_median, click_rate,
            click_rate_over_median, bounce_rate, unsubscribe_rate, is_percent_inconsistent
        from marts.campaign_performance
        where account = ? and type = 'standard' and sent_count > 0
        order by sent_at desc nulls last
        """,
        [account.value],
    ).df()
    mo.stop(campaigns.empty, mo.md("*No campaign was sent yet.*"))
    forms = dict.fromkeys(("open_rate", "click_rate", "bounce_rate", "unsubscribe_rate"), published.percent)
    forms |= dict.fromkeys(("open_rate_over_median", "click_rate_over_median"), published.points)
    choice = published.table(campaigns, forms, selection="single", initial_selection=[0], label="Choose a campaign")
    choice
    return (choice,)


@app.cell
def _(account, choice, con):
    mo.stop(choice.value.empty, mo.md("*Choose a campaign above.*"))
    campaign_id = int(choice.value["campaign_id"].iloc[0])
    one = (
        con.execute("select * from marts.campaign_performance where account = ? and campaign_id = ?", [account.value, campaign_id])
        .df()
        .iloc[0]
    )

    def figure(name, label):
        rate, median = one[f"{name}_rate"], one[f"median_{name}_rate_90d"]
        return mo.stat(published.percent(rate), label=label, caption=f"median of 90 days {published.percent(median)}")

    mo.vstack(
        [
            mo.Html(f"<h2 style='font-size: 1.3rem; margin: 0'>{html.escape(one.subject or '(no subject)')}</h2>"),
            mo.hstack(
                [
                    mo.stat(f"{one.delivered_count:,.0f}", label="delivered", caption=f"{one.bounced_count:,.0f} bounced"),
                    figure("open", "opened"),
                    figure("click", "clicked"),
                    mo.stat(f"{one.unsubscribed_count:,.0f}", label="unsubscribed"),
                ],
                justify="start",
                gap=2,
                wrap=True,
            ),
        ]
    )
    return (campaign_id,)


@app.cell
def _(account, campaign_id, con):
    days = con.execute(
        """
        select observed_on, opened_count, click_count from marts.campaign_daily
        where account = ? and campaign_id = ? order by observed_on
        """,
        [account.value, campaign_id],
    ).df()
    grown = days.melt("observed_on", var_name="what", value_name="count").replace({"opened_count": "opened", "click_count": "clicks"})
    published.lines(grown, "observed_on", "count", "Opened and clicks as of each night", color="what")
    return


@app.cell
def _(account, campaign_id, con):
    links = con.execute(
        """
        select coalesce(nullif(link_text, ''), url) as link, url, clicker_count, click_count from marts.campaign_link_clicks
        where account = ? and campaign_id = ? and is_current order by clicker_count desc limit 15
        """,
        [account.value, campaign_id],
    ).df()
    published.bars(links, "link", "clicker_count", "Addresses that clicked, by link")
    return


@app.cell
def _(account, con):
    hours = con.execute(
        "select weekday || ' ' || lpad(hour::text, 2, '0') || ' h' as sent, open_rate, campaign_count from marts.send_time_performance "
        "where account = ? and open_rate is not null order by open_rate desc limit 12",
        [account.value],
    ).df()
    mo.vstack(
        [
            mo.md("## When to send"),
            published.bars(hours, "sent", "open_rate", f"Open rate by time of sending (the best {len(hours)})", form=".0%"),
        ]
    )
    return


if __name__ == "__main__":
    app.run()
