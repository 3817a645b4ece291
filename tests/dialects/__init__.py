"""The sandbox in every dialect of the interface, and with faults that only a hostile service has.

A dialect is a switch: a translation of what the sandbox of the product is asked or answers, around its `App`.
Use `Options` and `serve` of `tests.dialects.server` in place of the product's; the command of that module has
an option for every switch and every fault."""
