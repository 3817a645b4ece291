"""Accounts, shops, servers and warehouses that are made up, for tests, attacks and benchmarks alike.

Belongs here: what several of them ask or read. Not here: what is expected of it, and what is measured."""
