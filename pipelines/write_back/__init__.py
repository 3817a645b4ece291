"""Sending data back: rows become items, items become requests, and every request's outcome is known.

    input → planning → outbox → sending → verifying → reporting

`item` has the values that all of them share, `push` begins a push and `push_service` takes it to its end, `mirror` copies the outbox
into `sync.writebacks`, `terminal` is the command. `activations` push what queries say after every night. Dagster is known to `jobs`,
`shown`, `inbox` and `activations.nightly` only.
"""
