import marimo

app = marimo.App(width="medium", app_title="Getting started", css_file="published.css")

with app.setup:
    import marimo as mo
    import published


@app.cell
def _():
    mo.md("""
    # Getting started

    Everything the nightly sync knows is in one DuckDB file, which is never locked. This page shows what is in it, how fresh
    it is, and how to ask. The other pages:

    - [Campaign review](?file=campaign_review.py): how each campaign did, what was clicked, and when mails are opened
    - [Contact segments](?file=contact_segments.py): who is engaged, who is dormant, and a tag for them
    - [Reputation](?file=reputation.py): ratings, reviews and mentions over time
    - [Data quality](?file=data_quality.py): what was read, what is missing
    - [Ask](?file=ask.py): questions of your own, in SQL
    """)
    return


@app.cell
def _():
    con = published.connect()
    return (con,)


@app.cell
def _(con):
    facts = published.facts(con)
    read = f"{facts.data_as_of:%d %b %H:%M}" if facts.data_as_of else "never"
    kept = {"keep": "unmasked", "hash": "hashed", "drop": "left out"}[facts.personal_data]
    mo.vstack(
        [
            published.sentences(published.news(con))
            or mo.md("*Nothing has been read yet, or too little to say what is usual.*"),
            mo.hstack(
                [
                    mo.stat(f"{facts.row_count:,}", label="rows"),
                    mo.stat(f"{facts.table_count}", label="tables"),
                    mo.stat(read, label="newest answer (UTC)"),
                    mo.stat(kept, label="personal data"),
                ],
                justify="start",
                gap=1,
                wrap=True,
            ),
        ]
    )
    return


@app.cell
def _():
    mo.md("""
    ## The tables

    `marts` has the answers, `source` the service's data as it stands, `history` how it changed, `sync` how it was read.
    Every table and column carries a comment, in any tool that shows comments, and here:
    """)
    return


@app.cell
def _(con):
    tables = published.tables(con)
    chosen = published.table(
        tables,
        selection="single",
        initial_selection=[0],
        wide={"What it is": 620},
        label="Choose a table for its columns and first rows",
    )
    chosen
    return (chosen,)


@app.cell
def _(chosen, con):
    mo.stop(chosen.value.empty, mo.md("*Choose a table above.*"))
    name = chosen.value["Table"].iloc[0]
    columns = con.execute(
        'select column_name as "Column", data_type as "Type", comment as "What it is" from duckdb_columns() '
        "where schema_name || '.' || table_name = ? order by column_index",
        [name],
    ).df()
    mo.vstack(
        [
            mo.md(f"### `{name}`"),
            mo.ui.tabs(
                {
                    "columns": published.table(columns, wide={"What it is": 620}),
                    "first rows": published.table(con.sql(f"select * from {name} limit 50").df()),
                }
            ),
        ]
    )
    return


@app.cell
def _():
    mo.md("""
    ## Asking

    ```python
    import duckdb
    con = duckdb.connect("data/live/published/marketing.duckdb", read_only=True)
    con.sql("select * from marts.campaign_performance").df()          # a pandas DataFrame
    ```

    or `duckdb -readonly data/live/published/marketing.duckdb` in a terminal, or any tool that opens DuckDB files; or the notebook
    `ask.py`, which begins with questions that were asked before. Machines open mails, too: an open rate compares campaigns, it
    does not count readers.
    """)
    return


if __name__ == "__main__":
    app.run()
