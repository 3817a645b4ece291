"""A stand-in for the service: a real HTTP server on the loopback with a seeded account of a
plausible business.

It is part of the product because the service has no test environment. Nothing outside this package
imports its insides: start it with `serve(options)`, `spawn(options)` or `python -m
marketing_api.sandbox`."""
