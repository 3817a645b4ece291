"""The command line whose syncs are not recorded in Dagster, which is most of a small one, remove no records of
older ones, and try nothing twice: for what is requested, loaded and displayed."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

from marketing_sync import cli


@contextmanager
def unrecorded() -> Iterator[None]:
    with (
        patch("pipelines.definitions.run_in_dagster", lambda *_: (uuid.uuid4().hex, {})),
        patch("pipelines.reading._prune_runs", lambda *_: None),
        patch("assets.reader.RETRIES", 0),
    ):
        yield


def main(words: Sequence[str]) -> int:
    with unrecorded():
        return cli.main(words)
