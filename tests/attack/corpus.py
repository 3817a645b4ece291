"""Whole, true answers of every read that fills tables, to be mutated: of the sandbox under each of its
switches, of a second server that was written from the specification alone, and of the samples that tests
show. Small ones: a mutation has to strike something that matters."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from marketing_api.operation import Call
from marketing_api.operations import ALL
from tests.attack.proof import prove
from tests.dialects.switches import SWITCHES
from tests.independent.answers import READS
from tests.independent.generate import Sizes, account
from tests.independent.server import Service
from tests.independent.variants import Variants, drawn, live_like
from tests.marketing_api.responses import enveloped
from tests.marketing_api.samples import SAMPLES
from tests.marketing_api.sandbox.asking import asking, content, params_for

#: Collections keep so many of their entries, and bodies are no longer than that (bytes).
_KEPT, _LONGEST = 3, 6_000
_RANGES = {"from": "2026-11-10", "to": "2026-11-20"}


@dataclass(frozen=True)
class Sample:
    """An answer as it came, and to what."""

    source: str
    call: Call
    body: bytes

    @property
    def operation(self) -> str:
        return self.call.operation.name


@cache
def corpus() -> tuple[Sample, ...]:
    """Every different one, in the same order on every machine."""
    found: dict[tuple[str, bytes], Sample] = {}
    for sample in (*_shown(), *_of_the_sandbox(), *_of_the_other_server()):
        body = json.dumps(_trimmed(json.loads(sample.body)), ensure_ascii=False).encode()
        small = Sample(sample.source, sample.call, body)
        if len(body) <= _LONGEST and prove(small.call, body) is not None:
            found.setdefault((sample.operation, _without_limit(body)), small)
    missing = set(SAMPLES) - {sample.operation for sample in found.values()}
    assert not missing, f"no true answer of {missing}"
    return tuple(found.values())


def _without_limit(body: bytes) -> bytes:
    """The rate limit's state makes no answer a different one."""
    whole = json.loads(body)
    whole.pop("rate-limit", None)
    return json.dumps(whole).encode()


def _shown() -> Iterator[Sample]:
    for name, (data, params) in SAMPLES.items():
        yield Sample("samples", ALL[name].bind(**params), enveloped(data))


def _of_the_sandbox() -> Iterator[Sample]:
    for switch in SWITCHES.values():
        for choice in switch.choices or ("3",):
            sandbox = asking(contacts=100)
            params = params_for(sandbox)
            sandbox.switch(switch.name, choice)
            for name in SAMPLES:
                operation = ALL[name]
                known = {parameter.name for parameter in operation.parameters}
                asked = params[name] | {key: day for key, day in _RANGES.items() if key in known}
                reply = sandbox.reply(name, **asked)
                yield Sample(f"sandbox, {switch.name}={choice}", operation.bind(**asked), content(reply))


def _of_the_other_server() -> Iterator[Sample]:
    chosen = [Variants(), live_like(), *(drawn(random.Random(seed)) for seed in range(12))]
    for seed, variants in enumerate(chosen):
        made = account(
            seed,
            Sizes(contacts=6, lists=2, campaigns=4, posts=4, links=3, reviews=4, mentions=4, days=4),
            strange=seed % 2 == 1,
        )
        service = Service(made, variants, limit=1_000_000, seed=seed)
        for name in SAMPLES:
            params = _asked_of(name, made, service)
            if name in READS and params is not None:
                call = ALL[name].bind(**params)
                _, _, body, _ = service.answer(name, {"key": made.key, **call.params})
                if body[:1] == b"{":
                    yield Sample(f"other server {seed}", call, body)


def _asked_of(name: str, made: Any, service: Service) -> dict[str, Any] | None:
    """What this account can be asked; None where it has nothing of the kind."""
    days = {"from_": "2015-01-01", "to": "2026-12-31"}
    first = {
        "emailmarketing/getcampaign": [(one.campaign_id, "standard") for one in made.campaigns],
        "emailmarketing/stats": [(one.campaign_id, "standard") for one in made.campaigns],
    }
    if name in first:
        return dict(zip(("id", "type"), first[name][0], strict=True)) if first[name] else None
    one = {
        "emailmarketing/getcontacts": lambda: {"listid": made.lists[0].list_id},
        "emailmarketing/getlist": lambda: {"id": made.lists[0].list_id},
        "emailmarketing/getcontacttimeline": lambda: {
            "id": made.members[0].contact_id,
            "include": "utm,automated",
        },
        "emailmarketing/getcoupon": lambda: {"email": made.members[0].email},
        "goal/show": lambda: {"id": made.goals[0].goal_id},
        "goal/listbydomain": lambda: {"domainid": 1},
        "webhook/show": lambda: {"id": made.webhooks[0].webhook_id},
        "socialmedia/getpost": lambda: {"id": made.posts[0].post_id, "channel": "facebook"},
    }
    try:
        return (
            one[name]()
            if name in one
            else {k: v for k, v in days.items() if "from" in {p.name for p in ALL[name].parameters}}
        )
    except IndexError:
        return None


def _trimmed(value: Any) -> Any:
    """Collections with their first entries only, and a `count` that told their number telling it still."""
    if isinstance(value, list):
        return [_trimmed(item) for item in value[:_KEPT]]
    if not isinstance(value, dict):
        return value
    are_entries = len(value) > _KEPT and all(
        isinstance(item, dict | list) and name[:1].isdigit() for name, item in value.items()
    )
    kept = {name: _trimmed(item) for name, item in list(value.items())[: _KEPT if are_entries else None]}
    if "count" in kept:
        kept["count"] = (
            _same_kind(_counted(kept), value["count"])
            if str(value["count"]) == str(_counted(value))
            else value["count"]
        )
    return kept


def _counted(wrapper: dict[str, Any]) -> int:
    """Entries with an id, or else those of the only collection."""
    inside = [part for name, part in wrapper.items() if isinstance(part, dict | list) and part]
    return sum(_entries(part) for part in inside)


def _entries(value: Any) -> int:
    if isinstance(value, dict) and (
        "id" in value or not any(isinstance(part, dict | list) for part in value.values())
    ):
        return 1
    if isinstance(value, dict | list):
        return sum(_entries(part) for part in (value.values() if isinstance(value, dict) else value))
    return 0


def _same_kind(number: int, like: Any) -> Any:
    return str(number) if isinstance(like, str) else number
