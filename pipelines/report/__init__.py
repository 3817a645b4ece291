"""The report for the business owner: one page made of what is published.

`queries` reads the published file, `figures` computes, `charts` makes pictures, `render` fills the templates (`templates/`) and puts the
page into the home, `mail` sends it.
"""
