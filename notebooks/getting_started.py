import marimo

app = marimo.App(width="medium", app_title="Getting started", css_file="published.css")

with app.setup:
    import marimo as mo
    import published


@app.cell
def _():
    mo.md("""
    # Getting started

    The nightly sync publishes its data as one DuckDB file, which is never locked. This page shows what is in the file, how fresh
    it is, and how to query it. The other pages:

    - [Campaign review](?file=campaign_review.py): how each campaign did, what was clicked, and when messages are opened
    - [Contact segments](?file=contact_segments.py): who is engaged, who is dormant, and how to tag them
    - [Reputation](?file=reputation.py): ratings, reviews and mentions over time
    - [Data quality](?file=data_quality.py): what was read, and what is missing
    - [Ask in SQL](?file=ask.py): your own questions, starting from examples
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
            published.sentences(published.news(con)) or mo.md("*There is nothing to report yet.*"),
            mo.hstack(
                [
                    mo.stat(f"{facts.row_count:,}", label="rows"),
                    mo.stat(f"{facts.table_count}", label="tables"),
                    mo.stat(read, label="data as of (UTC)"),
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

    The tables in `marts` answer common questions. `source` has the service's current data, `history` has its changes, and `sync`
    has what was requested and read. Each table and column has a description, here and as a comment in the file:
    """)
    return


@app.cell
def _(con):
    tables = published.tables(con)
    chosen = published.table(
        tables,
        selection="single",
        initial_selection=[0],
        wide={"Description": 620},
        label="Select a table to see its columns and first rows",
    )
    chosen
    return (chosen,)


@app.cell
def _(chosen, con):
    mo.stop(chosen.value.empty, mo.md("*Select a table above.*"))
    name = chosen.value["Table"].iloc[0]
    columns = con.execute(
        'select column_name as "Column", data_type as "Type", comment as "Description" from duckdb_columns() '
        "where schema_name || '.' || table_name = ? order by column_index",
        [name],
    ).df()
    mo.vstack(
        [
            mo.md(f"### `{name}`"),
            mo.ui.tabs(
                {
                    "columns": published.table(columns, wide={"Description": 620}),
                    "first rows": published.table(con.sql(f"select * from {name} limit 50").df()),
                }
            ),
        ]
    )
    return


@app.cell
def _():
    file = published.path()
    mo.md(f"""
    ## Query the file

    ```python
    import duckdb
    con = duckdb.connect("{file}", read_only=True)
    con.sql("select * from marts.campaign_performance").df()          # a pandas DataFrame
    ```

    You can also run `duckdb -readonly {file}` in a terminal, use any other tool that opens DuckDB files, or select an example in the notebook `ask.py`.

    Use open rates to compare campaigns, not to count readers. {published.MACHINE_OPENS}
    """)
    return


if __name__ == "__main__":
    app.run()
