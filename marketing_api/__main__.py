"""`python -m marketing_api` is `python -m marketing_sync`: nothing here imports what is above
it."""

import runpy

runpy.run_module("marketing_sync", run_name="__main__")
