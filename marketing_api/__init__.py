"""The service: what it offers, how to request it, what comes back, and a sandbox that replaces
it."""

#: Of the whole distribution.
__version__ = "1.0.0"
