"""marketing-sync by its own name: what other programs may import (docs/python.md).

Belongs here: names that stay, from 1.0.0 on. Not here: what they do; the packages beside this one are free to
change."""

from marketing_api import __version__

__all__ = ["__version__"]
