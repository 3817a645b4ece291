import marimo

app = marimo.App(width="medium", app_title="Getting started")

with app.setup:
    import marimo as mo
    import published


@app.cell
def _():
    mo.md("""
    # Getting started

    Everything the nightly sync knows is in one DuckDB file, which is never locked. This page shows what is in it, how fresh
    it is, and how to ask. The other notebooks answer a question each: campaigns, contact segments, reputation, data quality.
    """)
    return


@app.cell
def _():
    con = published.connect()
    return (con,)


@app.cell
def _(con):
    facts = con.sql("select published_at, data_as_of, personal_data, table_count, row_count from sync.published").df().iloc[0]
    mo.hstack(
        [
            mo.stat(f"{facts.row_count:,}", label="rows"),
            mo.stat(f"{facts.table_count}", label="tables"),
            mo.stat(f"{facts.data_as_of:%d %b %H:%M}" if facts.data_as_of == facts.data_as_of else "never", label="newest answer (UTC)"),
            mo.stat(facts.personal_data, label="personal data"),
        ],
        justify="start",
        gap=2,
        wrap=True,
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
    tables = con.sql("""
        select schema_name as "schema", table_name as "table", estimated_size as "rows", split_part(comment, '. ', 1) as "what it is"
        from duckdb_tables() where schema_name in ('marts', 'source', 'history', 'sync')
        order by array_position(['marts', 'source', 'history', 'sync'], schema_name), table_name
    """).df()
    chosen = published.table(
        tables, selection="single", initial_selection=[0], page_size=12, label="Choose a table for its columns and first rows"
    )
    chosen
    return (chosen,)


@app.cell
def _(chosen, con):
    mo.stop(chosen.value.empty, mo.md("*Choose a table above.*"))
    name = f"{chosen.value['schema'].iloc[0]}.{chosen.value['table'].iloc[0]}"
    columns = con.execute(
        'select column_name as "column", data_type as "type", comment as "what it is" from duckdb_columns() '
        "where schema_name || '.' || table_name = ? order by column_index",
        [name],
    ).df()
    mo.vstack(
        [
            mo.md(f"### `{name}`"),
            mo.ui.tabs(
                {
                    "columns": published.table(columns, page_size=12, column_widths={"what it is": 640}),
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

    or `duckdb -readonly data/live/published/marketing.duckdb` in a terminal, or any tool that opens DuckDB files.
    Write a query of your own (machines open mails, too: an open rate compares campaigns, it does not count readers):
    """)
    return


@app.cell
def _():
    question = mo.ui.code_editor(
        "select subject, sent_at::date::text as sent_on, sent_count,\n"
        "    round(open_rate, 3) as open_rate, round(click_rate, 3) as click_rate\n"
        "from marts.campaign_performance\nwhere sent_count > 0\norder by sent_at desc\nlimit 10",
        language="sql",
        min_height=110,
    )
    question
    return (question,)


@app.cell
def _(con, question):
    try:
        answer = published.table(con.sql(question.value).df())
    except Exception as problem:
        answer = mo.callout(mo.plain_text(str(problem)), kind="warn")
    answer
    return


if __name__ == "__main__":
    app.run()
