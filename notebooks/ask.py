import marimo

app = marimo.App(width="medium", app_title="Ask in SQL", css_file="published.css")

with app.setup:
    import marimo as mo
    import published


@app.cell
def _():
    mo.md("""
    # Ask in SQL

    Select a question to see its query and the answer. Then edit the query to ask a question of your own. Queries only read the
    published file; they can't change it.
    """)
    return


@app.cell
def _():
    con = published.connect()
    examples = published.examples()
    example = mo.ui.dropdown(
        list(examples),
        value="Which of the last campaigns did better than usual, and which worse?",
        label="Question",
        full_width=True,
    )
    example
    return con, example, examples


@app.cell
def _(example, examples):
    start = (
        examples[example.value]
        if example.value
        else "select * from marts.account_daily order by day_on desc limit 30"
    )
    question = mo.ui.code_editor(start, language="sql", min_height=150).form(
        submit_button_label="Run"
    )
    question
    return question, start


@app.cell
def _(con, question, start):
    answer = published.ask(con, question.value or start)
    mo.stop(isinstance(answer, str), mo.callout(mo.plain_text(str(answer)), kind="warn"))
    mo.stop(
        answer.empty,
        published.heading(
            "The query returned no rows.",
            "It ran without an error, but the published file has no matching data.",
        ),
    )
    is_cut = len(answer) > published.ROW_LIMIT
    result = answer.head(published.ROW_LIMIT)
    size = (
        f"{published.plural(len(result), 'row')}, {published.plural(len(result.columns), 'column')}"
    )
    found = published.measures(result)
    between = "; ".join(filter(None, (published.extremes(result, name) for name in found[:1])))
    said = f"The first {size}, of a longer result" if is_cut else size
    mo.vstack(
        [
            published.heading(
                f"{said}; {between}." if between else f"{said}.",
                f"Times are in UTC. {published.DASH}",
            ),
            published.table(result, published.forms(result)),
        ]
    )
    return found, result


@app.cell
def _(found):
    measure = mo.ui.dropdown(found, value=found[0] if found else None, label="Chart of")
    measure if len(found) > 1 else None
    return (measure,)


@app.cell
def _(measure, result):
    drawn = published.picture(result, measure.value) if measure.value else None
    drawn or mo.md(
        "*No chart: the result needs a column of numbers, and a column of dates or text.*"
    )
    return


@app.cell
def _(con):
    mo.accordion(
        {"Available tables": published.table(published.tables(con), wide={"Description": 620})}
    )
    return


if __name__ == "__main__":
    app.run()
