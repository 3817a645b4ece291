"""A second opinion: a service, an account and the expected tables, written from the specification alone.

Nothing here imports `marketing_api`, `warehouse`, `assets` or `pipelines`: the tool is run as a command and
judged by what it leaves behind. What both sides know is the specification, the observations and the table
list of the design."""
