"""The command line whose syncs are not recorded in Dagster, which is most of a small one: for what is
requested, loaded and displayed."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from unittest.mock import patch

from pipelines import cli

unrecorded = patch("pipelines.definitions.run_in_dagster", lambda *_: uuid.uuid4().hex)


def main(words: Sequence[str]) -> int:
    with unrecorded:
        return cli.main(words)
