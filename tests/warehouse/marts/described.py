"""What dbt resolved of the marts' descriptions."""

from __future__ import annotations

from functools import cache

from docs import generate

described = cache(generate.described)
