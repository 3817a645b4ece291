"""Every registered kind of push has what its attributes promise."""

from __future__ import annotations

import pytest

from home.options import PUSH_OPTIONS
from write_back.item import EffectKind
from write_back.kinds import KINDS, NOT_IDEMPOTENT, Kind


def test_each_kind_can_be_typed() -> None:
    assert list(PUSH_OPTIONS) == list(KINDS)


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_a_kind_defines_what_is_called_for_it(kind: Kind) -> None:
    assert not kind.planning.__abstractmethods__
    assert kind.effect in EffectKind
    assert kind.agreement is None or "{count}" in kind.agreement
    assert [str(each) for each in NOT_IDEMPOTENT] == ["activities"]
