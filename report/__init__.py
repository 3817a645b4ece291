"""The report for the business owner: `queries` reads what is published, `figures` counts, `charts`
draws, `render` writes, `mail` sends."""
