"""What was answered can be used in place of asking."""

import datetime as dt
from pathlib import Path
from typing import Any

from marketing_api.exchange import Exchange, Outcome
from marketing_api.operation import Call, Effect, Operation
from marketing_api.operations import ALL
from tests.warehouse.exchanges import ALWAYS, NOON, envelope, exchange, question, record
from warehouse.archive.archive import Archive


def test_the_latest_whole_answer_can_be_used_again_whatever_the_clock_showed(root: Path) -> None:
    def at(minutes: int, n: int, **more: Any) -> Exchange:
        return exchange(envelope({"n": n}), at=NOON + dt.timedelta(minutes=minutes), **more)

    def answered(since: int, first: int = 0, last: int = 9) -> Any:
        between = (NOON + dt.timedelta(minutes=first), NOON + dt.timedelta(minutes=last))
        answer = archive.find_reusable("main", since, between).get(question().key)
        return None if answer is None else answer.body

    with Archive(root) as archive:
        ids = record(
            archive, at(0, 0), at(3, 3), at(2, 2), at(4, 4, outcome=Outcome.BROKEN), at(5, 5, account="other")
        )
        for _ in range(2):
            assert archive.find_reusable("main", 0, ALWAYS).request_id(question().key) == ids[2]
            assert answered(ids[0]) == answered(ids[2]) == envelope({"n": 2}), (
                "the last request, though the clock had been set back"
            )
            assert answered(ids[0], 3) == envelope({"n": 3})
            assert answered(ids[0], 0, 1) == envelope({"n": 0})
            assert answered(ids[3]) is None
            assert archive.find_reusable("main", 0, ALWAYS).get(question(2).key) is None
            archive.seal_requests()


def test_answers_recorded_later_can_be_used_too(root: Path) -> None:
    with Archive(root) as archive:
        reusable = archive.find_reusable("main", 0, ALWAYS)
        record(archive, exchange(b"{}"), exchange(b"{}", question(2), outcome=Outcome.REFUSED))
        assert reusable.request_id(question().key) is not None
        assert reusable.request_id(question(2).key) is None
        assert reusable.get(question().key).body == b"{}"  # type: ignore[union-attr]


def test_the_answer_to_a_write_is_never_used_again(root: Path) -> None:
    write = next(operation for operation in ALL.values() if operation.effect is Effect.DELETE)
    asked = Call(write, {"id": "1"})
    with Archive(root) as archive:
        record(archive, exchange(envelope({"item": "done"}), asked))
        assert archive.find_reusable("main", 0, ALWAYS).get(asked.key) is None


def test_an_operation_this_version_does_not_know_keeps_nobody_from_reading(root: Path) -> None:
    unknown = Call(Operation("future/thing", "GET", Effect.READ, "Not yet."), {"x": "1"})
    with Archive(root) as archive:
        ids = record(archive, exchange(b"{}", unknown), exchange(b"[]"))
        for _ in range(2):
            future, known = archive.responses(ids)
            assert (future.call.operation.name, future.call.params, future.body) == (
                "future/thing",
                {"x": "1"},
                b"{}",
            )
            assert known.body == b"[]"
            archive.seal_requests()
