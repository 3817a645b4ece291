"""The plan of one night for what costs a request per contact: timelines and coupons, under one budget.

Pure functions of Arrow tables (`warehouse.candidates`). Not here: reading them and asking (`planner`).
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from assets.planning.candidates import Flags, Floats, Ints, Questions, from_arrow
from assets.planning.order import REASONS, Order, Reason, everybody, order, reasons
from assets.planning.rates import Yields, chances, groups, unchanged
from assets.planning.waves import Waves, unreached

TIMELINES, COUPONS = "timelines", "coupons"
#: The column that a question is asked by, and the one with its number.
_KEYS = {TIMELINES: ("contact_id", "contact_id"), COUPONS: ("email", "number")}


@dataclass(frozen=True)
class Inputs:
    """The tables of `warehouse.candidates` that contacts are planned from. `people` are read question by question, and only their
    figures kept: a million rows of one need no room while another's are read."""

    people: Mapping[str, Callable[[], pa.Table]]
    waves: pa.Table
    reach: pa.Table
    yields: pa.Table


@dataclass(frozen=True)
class Rules:
    """What a night has to keep to. `limit` is in requests (None: as many as are worth it)."""

    max_age: dt.timedelta = dt.timedelta(days=7)
    limit: int | None = None
    asks_everybody: bool = False
    seed: int = 1


@dataclass(frozen=True)
class Line:
    """What is asked of one kind of question: `keys` in the order of asking, each with its reason (index into REASONS) and the chance
    that it would have something new without that (`expected`).

    `total` questions could be asked. `late` and `waiting` are left out although their guarantee ends before the next night, or they
    were never asked; `dropped` although they are worth a request. `due_at`: when, after this night, the first of all is due.
    """

    question: str
    keys: pa.Array
    reasons: npt.NDArray[np.int8]
    expected: Floats
    total: int
    late: int
    waiting: int
    dropped: int
    due_at: dt.datetime

    @property
    def counts(self) -> dict[Reason, int]:
        """Questions by reason, in the order of reasons."""
        found = Counter(self.reasons.tolist())
        return {reason: found[code] for code, reason in enumerate(REASONS) if found[code]}

    @property
    def not_due(self) -> int:
        """Questions that can wait for another night."""
        return self.total - len(self.keys) - self.late - self.waiting

    @property
    def words(self) -> str:
        """How many are asked and why, and that the others are not due: for the run's log and the terminal."""
        why = ", ".join(f"{reason} {count:,}" for reason, count in self.counts.items())
        rest = f"; {self.not_due:,} are not due, `--all` asks them too" if self.not_due else ""
        return f"{len(self.keys):,} of {self.total:,} planned ({why or 'nothing was due'}){rest}"

    @property
    def is_whole(self) -> bool:
        """Nothing is left out that the guarantee wants asked."""
        return not self.late and not self.waiting


@dataclass(frozen=True)
class ContactPlan:
    """The lines by question; `needed` requests keep the guarantee tonight, `steady` every night when nothing changes."""

    lines: Mapping[str, Line] = field(default_factory=dict)
    limit: int | None = None
    needed: int = 0
    steady: int = 0

    @property
    def requests(self) -> int:
        return sum(len(line.keys) for line in self.lines.values())


def plan_contacts(inputs: Inputs, rules: Rules, now: dt.datetime) -> ContactPlan:
    """Whom to ask tonight. The same tables and rules give the same plan."""
    learnt = _yields(inputs.yields)
    parts = {name: _Part(name, read(), inputs, rules, now.timestamp(), learnt) for name, read in inputs.people.items()}
    if not parts:
        return ContactPlan(limit=rules.limit)
    together = _joined([part.questions for part in parts.values()])
    if rules.asks_everybody:
        found = everybody(together)
    else:
        chance, why = (np.concatenate([getattr(part, name) for part in parts.values()]) for name in ("chance", "why"))
        found = order(together, chance, why, now.timestamp(), limit=rules.limit, seed=rules.seed)
    lines, first = {}, 0
    for name, part in parts.items():
        lines[name] = part.line(found, first)
        first += len(part.questions)
    nights = max(rules.max_age / dt.timedelta(days=1), 1.0)
    return ContactPlan(lines, rules.limit, found.needed, int(np.ceil(first / nights)))


class _Part:
    """One kind of question with its chances; of its rows it keeps the keys."""

    def __init__(self, question: str, rows: pa.Table, inputs: Inputs, rules: Rules, now: float, learnt: Yields) -> None:
        self.question = question
        key, number = _KEYS[question]
        self._keys = rows[key]
        self._again = now + rules.max_age.total_seconds()
        candidates, segments = from_arrow(rows, number, rules.max_age, now)
        own = unchanged(candidates, groups(candidates, now), now)
        waves = unreached(candidates, waves_of(inputs.waves, inputs.reach, segments)) if question == TIMELINES else None
        self._expected: Floats = np.where(candidates.is_new, 0.0, -np.expm1(own if waves is None else own + waves))
        self.chance: Floats = chances(question, candidates, own, waves=waves, yields=learnt)
        self.why = reasons(candidates, self.chance, waves)
        self.questions = Questions(candidates.number, candidates.asked, candidates.deadline)

    def _due_at(self, left: Flags) -> dt.datetime:
        return dt.datetime.fromtimestamp(float(np.min(self.questions.deadline[left], initial=self._again)), dt.UTC)

    def line(self, found: Order, first: int) -> Line:
        """This part of an order over all parts, of which it begins at position `first`."""
        here = slice(first, first + len(self.questions))
        mine = (found.positions >= first) & (found.positions < here.stop)
        positions = found.positions[mine] - first
        left = np.ones(len(self.questions), bool)
        left[positions] = False
        return Line(
            self.question,
            keys=self._keys.take(pa.array(positions)).combine_chunks(),
            reasons=found.reasons[mine],
            expected=self._expected[positions],
            total=len(self.questions),
            late=int(found.is_late[here].sum()),
            waiting=int(found.is_waiting[here].sum()),
            dropped=int(found.is_dropped[here].sum()),
            due_at=self._due_at(left),
        )


def _joined(parts: list[Questions]) -> Questions:
    """One after the other."""
    return Questions(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("number", "asked", "deadline")))


def waves_of(waves: pa.Table, reach: pa.Table, segments: npt.NDArray[np.uint64]) -> Waves:
    """The tables as columns; `segments` are the names of segments 0, 1, … (`candidates.from_arrow`)."""
    ids, first, campaign = np.unique(waves["campaign_id"].to_numpy(), return_index=True, return_inverse=True)
    clicked = np.zeros((len(ids), len(segments) + 1))
    if len(ids):
        known, at = _positions(ids, reach["campaign_id"].to_numpy())
        named, place = _positions(segments, reach["segment"].to_numpy())
        kept = known & named
        np.add.at(clicked, (at[kept], place[kept]), reach["clickers"].to_numpy()[kept])
    return Waves(
        seen=waves["seen_at"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy() / 1e6,
        share=waves["share"].to_numpy().astype(float),
        campaign=campaign.astype(np.int64),
        reached=waves["reached"].to_numpy().astype(float)[first],
        clickers=waves["clickers"].to_numpy().astype(float)[first],
        clicked=clicked,
    )


def _positions(names: npt.NDArray[np.generic], wanted: npt.NDArray[np.generic]) -> tuple[Flags, Ints]:
    """Whether each wanted value is among the sorted names, and where."""
    if not len(names):
        return np.zeros(len(wanted), bool), np.zeros(len(wanted), np.int64)
    at = np.minimum(np.searchsorted(names, wanted), len(names) - 1)
    return names[at] == wanted, at.astype(np.int64)


def _yields(rows: pa.Table) -> Yields:
    columns = (rows[name].to_pylist() for name in ("question", "reason", "changed", "asked", "expected"))
    return Yields(
        {(question, reason): (float(a or 0), float(b or 0), float(c or 0)) for question, reason, a, b, c in zip(*columns, strict=True)}
    )
