"""What the models' yml says of the marts: reading it takes a quarter of a second."""

from __future__ import annotations

from functools import cache

from warehouse import model_files

described = cache(model_files.marts)
