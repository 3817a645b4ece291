"""Sending data back: rows become items, items become requests, and the outbox stores the outcome of
each request.

    push_service: plan (`planning`, `kinds`) → enqueue (`outbox`) → send (`sending`) → verify
    (`verification`) → conclude (`push_report`, `writebacks_export`)

`push_terminal`, `push_jobs` and the audience syncs only start pushes and display them. Everything
about one kind of push is in its files of `kinds`. Only `push_jobs` uses Dagster."""
