"""One module per kind of push: from rows, what is known and what was done before to a plan. Pure but for asking the two."""
