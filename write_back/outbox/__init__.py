"""The durable queue of all items, with their outcomes. It sends nothing."""
