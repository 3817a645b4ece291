"""Sending data back: rows become items, items become requests, and every request's outcome is
known.

    push_service: plan (`planning`, `kinds`) → enqueue (`outbox`) → send (`sending`) → verify
    (`verification`) → conclude (`result`)

`push_terminal`, `push_jobs` and the audience syncs begin pushes and display them, and nothing else.
What is known about one kind of push stands in its file of `kinds`. Dagster is known to `push_jobs`
only."""
