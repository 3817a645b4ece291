"""What is fetched, when, and which table it fills."""

from assets.sources import SOURCE_ASSETS

__all__ = ["SOURCE_ASSETS"]
