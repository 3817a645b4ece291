"""The report for the business owner: one page made of what is published.

`data` reads the published file, `page` makes the HTML of that, section by section (`sections/`), from `parts`, `charts`, `style` and
`words`; `write` puts it into the home. Everything but `data` and `write` is pure: from rows to text.
"""
