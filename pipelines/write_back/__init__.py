"""Sending data back: rows become items, items become requests, and every request's outcome is known.

A push is planned (`rows`, `columns`, `kinds`, `plan`), kept in the outbox (`outbox`), sent (`send`), reconciled and read back
(`reconcile`, `verify`); `push` does these in order, `jobs` shows them in Dagster. No Dagster but in `jobs` and `inbox`.
"""
