"""What dbt resolved of the marts' descriptions."""

from functools import cache

from docs import generate

described = cache(generate.described)
