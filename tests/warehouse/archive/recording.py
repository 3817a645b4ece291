"""A process that records without end, for tests to kill: prints each request's id once it is recorded."""

import itertools
import sys
from pathlib import Path

from tests.warehouse.exchanges import envelope, exchange, question
from warehouse.archive.archive import Archive


def main(root: str, spool: str, count: str = "0") -> None:
    large = Path(spool)
    with Archive(Path(root), full_rows=300) as archive:
        print("open", flush=True)
        for number in range(1, int(count) + 1) if int(count) else itertools.count(1):
            one = exchange(large if number % 50 == 0 else envelope({"n": number}), question(number))
            archive.record_exchange(one)
            print(one.request_id, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
