import marimo

app = marimo.App(width="medium", app_title="Reputation")

with app.setup:
    import marimo as mo
    import published


@app.cell
def _():
    mo.md("""
    # Reputation

    Ratings by channel, good and bad reviews and mentions over time, and the latest words.
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
    channels = con.execute(
        """
        select channel, average_rating, average_rating_change_28d, review_count, review_count_28d, good_rate_28d,
            positive_rate_28d,
            last_review_at::date::text as last_review_on
        from marts.reputation_overview where account = ? order by review_count desc nulls last
        """,
        [account.value],
    ).df()
    forms = dict.fromkeys(("average_rating", "average_rating_change_28d"), published.decimal) | dict.fromkeys(
        ("good_rate_28d", "positive_rate_28d"), published.percent
    )
    published.table(channels, forms, label="Where people talk")
    return


@app.cell
def _():
    window = mo.ui.dropdown({"7 days": "7d", "28 days": "28d"}, value="28 days", label="Rolling mean over")
    since = mo.ui.dropdown({"90 days": 90, "1 year": 365, "everything": 36500}, value="1 year", label="Since")
    mo.hstack([window, since], justify="start")
    return since, window


@app.cell
def _(account, con, since, window):
    days = con.execute(
        f"""
        select day_on, good_rate_{window.value} as good_rate, positive_rate_{window.value} as positive_rate,
            average_rating_{window.value} as average_rating, view_count_mean_{window.value} as views
        from marts.review_daily
        where account = ? and day_on > (select max(day_on) from marts.review_daily where account = ?) - ?::int
        order by day_on
        """,
        [account.value, account.value, since.value],
    ).df()
    rates = days.melt("day_on", ["good_rate", "positive_rate"], "what", "rate").dropna()
    rates["what"] = rates["what"].map({"good_rate": "good reviews on the feedback page", "positive_rate": "positive mentions"})
    mo.vstack(
        [
            published.lines(rates, "day_on", "rate", "Share of good reviews, and of positive mentions", color="what", form=".0%"),
            published.lines(
                days[["day_on", "average_rating"]].dropna(), "day_on", "average_rating", "Average rating of reviews on sites", form=".1f"
            ),
            published.lines(days[["day_on", "views"]].dropna(), "day_on", "views", "Views of the feedback page a day"),
        ]
    )
    return


@app.cell
def _(account, con):
    words = con.execute(
        """
        select reviewed_at::date::text as day, channel, rating::text as rating, inquiry as words
        from source.online_reviews where account = ?
        union all
        select reviewed_at::date::text, 'feedback page', rating, inquiry from source.direct_reviews
        where account = ? and _deleted_at is null
        order by day desc nulls last limit 100
        """,
        [account.value, account.value],
    ).df()
    mo.vstack([mo.md("## The latest words"), published.table(words, column_widths={"words": 600})])
    return


if __name__ == "__main__":
    app.run()
