"""Every registered kind of push has what its attributes promise."""

import pytest

from home.options import PUSH_OPTIONS
from write_back.item import EffectKind
from write_back.kinds import KINDS, NOT_IDEMPOTENT, Kind
from write_back.outbox.store import OutboxTooNew


def test_each_kind_can_be_typed() -> None:
    assert list(PUSH_OPTIONS) == list(KINDS)


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_a_kind_defines_what_is_called_for_it(kind: Kind) -> None:
    assert not kind.planning.__abstractmethods__
    assert kind.effect in EffectKind
    assert [str(each) for each in NOT_IDEMPOTENT] == ["activities"]


def test_an_outbox_with_a_kind_of_another_version_is_refused() -> None:
    with pytest.raises(OutboxTooNew, match="a push of letters"):
        KINDS["letters"]
