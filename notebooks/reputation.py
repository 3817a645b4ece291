import marimo

app = marimo.App(width="medium", app_title="Reputation", css_file="published.css")

with app.setup:
    import marimo as mo
    import published


@app.cell
def _():
    mo.md("""
    # Reputation

    Ratings by channel, good reviews and positive mentions over time, and the latest reviews.
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
    newest = published.day_of(con, account.value, "last_review_at")
    channels = con.execute(
        f"""
        select channel as "Channel", average_rating as "Stated rating", average_rating_change_28d as "Change, 28 days",
            served_review_count_before as "Listed then", served_review_count as "Listed now",
            review_count as "Reviews", review_count_28d as "Reviews, 28 days", good_rate_28d as "Good reviews, 28 days",
            positive_rate_28d as "Positive mentions, 28 days", {newest} as "Newest"
        from marts.reputation_overview where account = ? order by review_count desc nulls last, channel
        """,
        [account.value],
    ).df()
    mo.stop(channels.empty, mo.md("*There are no reviews and mentions yet.*"))
    channels["Newest"] = channels["Newest"].dt.date
    recent = float(channels["Reviews, 28 days"].sum())
    _said = (
        f"{published.plural(int(recent), 'review')} in the last 28 days, "
        f"{published.number(float(channels['Reviews'].sum()))} in all."
    )
    forms = {
        "Stated rating": published.rating,
        "Change, 28 days": lambda value: published.change(value, 1),
        "Good reviews, 28 days": published.share,
        "Positive mentions, 28 days": published.share,
    }
    _note = (
        "The stated rating is what the site itself shows, for all its reviews. “Listed then” and “Listed now” "
        "are the reviews that it listed 28 days ago and now. Good reviews are those on your feedback page. "
        f"Positive mentions are the ones that the service rates as positive. {published.DASH}"
    )
    mo.vstack([published.heading(_said), published.table(channels, forms), published.note(_note)])
    return channels, forms


@app.cell
def _(account, con):
    days = published.period_choice(
        con,
        "select min(day_on), max(day_on) from marts.review_daily where account = ?",
        account.value,
        "Days",
        days=365,
    )
    window = mo.ui.dropdown(
        {"7 days": "7d", "28 days": "28d"}, value="28 days", label="Average over"
    )
    mo.stop(days is None)
    mo.hstack([days, window], justify="start", wrap=True)
    return days, window


@app.cell
def _(account, con, days, window):
    first, last = published.period(days)
    daily = con.execute(
        f"""
        select day_on, good_rate_{window.value} as good_rate, positive_rate_{window.value} as positive_rate,
            average_rating_{window.value} as average_rating, view_count_mean_{window.value} as views
        from marts.review_daily where account = ? and day_on between ? and ? order by day_on
        """,
        [account.value, first, last],
    ).df()
    rates = daily.melt("day_on", ["good_rate", "positive_rate"], "what", "rate")
    rates["what"] = rates["what"].map(
        {"good_rate": "good reviews on the feedback page", "positive_rate": "positive mentions"}
    )
    _mean = f"average of {window.selected_key}"
    good = daily.dropna(subset=["good_rate"])["good_rate"]
    moved = (
        f"The share of good reviews went from {published.share(good.iloc[0])} to "
        f"{published.share(good.iloc[-1])} in this period."
        if len(good) > 1
        else "The share of good reviews is unknown in this period."
    )
    mo.vstack(
        [
            published.heading(
                moved,
                f"In a gap, there was no review in the {window.selected_key} before, or the data was not read.",
            ),
            published.lines(
                rates,
                "day_on",
                "rate",
                "Good reviews and positive mentions",
                f"share, {_mean}",
                color="what",
                form=".0%",
                domain=(0, 1),
            ),
            published.lines(
                daily,
                "day_on",
                "average_rating",
                "Rating on review sites",
                f"of 5, {_mean}",
                form=".1f",
                domain=(1, 5),
            ),
            published.lines(
                daily, "day_on", "views", "Views of the feedback page", f"a day, {_mean}"
            ),
        ]
    )
    return first, last


@app.cell
def _(account, con, first, last):
    day = published.day_of(con, account.value, "reviewed_at")
    words = con.execute(
        f"""
        select {day} as day, channel, rating::text as rating, inquiry as words
        from source.online_reviews where account = $account and {day} between $first and $last
        union all
        select {day}, 'feedback page', rating, inquiry from source.direct_reviews
        where account = $account and _deleted_at is null and {day} between $first and $last
        order by day desc nulls last limit 100
        """,
        {"account": account.value, "first": first, "last": last},
    ).df()
    mo.stop(words.empty, mo.md("*There are no reviews in this period.*"))
    words["day"] = words["day"].dt.date
    is_kept = published.facts(con).personal_data == "keep"
    _said = f"The newest {published.plural(len(words), 'review')} in this period" + (
        "" if is_kept else ", without their words"
    )
    _note = (
        ""
        if is_kept
        else "This file was published without personal data, which includes what people wrote."
    )
    listed = (words if is_kept else words.drop(columns="words")).rename(columns=str.capitalize)
    mo.vstack(
        [
            published.heading(_said, _note),
            published.table(listed, wide={"Words": 560} if is_kept else None),
        ]
    )
    return


if __name__ == "__main__":
    app.run()
