"""Schedules and sensors continue after a clock that was ahead: Dagster makes no tick before its newest one."""

import datetime as dt
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_origin import RemoteInstigatorOrigin
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    InstigatorType,
    ScheduleInstigatorData,
    SensorInstigatorData,
    TickData,
    TickStatus,
)

from marketing_api.clock import SteadyClock, utc_now
from marketing_sync.commands.ui import _is_set_back
from pipelines.dagster_internals import _CODE_LOCATION, redate_ticks

YEAR_S = 400 * 86_400.0


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        yield instance


def add(instance: dg.DagsterInstance, kind: InstigatorType, moment: float) -> InstigatorState:
    """A schedule or sensor of ours that ticked then."""
    origin = RemoteInstigatorOrigin(_CODE_LOCATION, kind.value)
    data = (
        ScheduleInstigatorData("0 2 * * *", start_timestamp=1.0, last_iteration_timestamp=moment)
        if kind is InstigatorType.SCHEDULE
        else SensorInstigatorData(moment, min_interval=30, last_tick_start_timestamp=moment)
    )
    state = InstigatorState(origin, kind, InstigatorStatus.RUNNING, data)
    instance.add_instigator_state(state)
    instance.create_tick(
        TickData(
            state.instigator_origin_id,
            state.instigator_name,
            kind,
            TickStatus.SUCCESS,
            moment,
            run_ids=[],
            selector_id=state.selector_id,
        )
    )
    return state


@pytest.mark.parametrize("kind", [InstigatorType.SCHEDULE, InstigatorType.SENSOR])
def test_ticks_that_are_still_to_come_are_dated_now(
    instance: dg.DagsterInstance, kind: InstigatorType
) -> None:
    before = time.time()
    state = add(instance, kind, before + YEAR_S)
    assert redate_ticks(instance) == 1
    (tick,) = instance.get_ticks(state.instigator_origin_id, state.selector_id)
    assert before <= tick.timestamp <= time.time()
    found = instance.get_instigator_state(state.instigator_origin_id, state.selector_id)
    assert found is not None
    moments = [moment for moment in found.instigator_data or () if isinstance(moment, float)]
    assert max(moments) <= time.time()
    assert redate_ticks(instance) == 0


def test_earlier_ticks_stay_as_they_are(instance: dg.DagsterInstance) -> None:
    moment = time.time() - 60
    state = add(instance, InstigatorType.SCHEDULE, moment)
    assert redate_ticks(instance) == 0
    (tick,) = instance.get_ticks(state.instigator_origin_id, state.selector_id)
    assert tick.timestamp == moment


@pytest.mark.parametrize(("jump_s", "is_over"), [(-YEAR_S, True), (-60.0, False), (YEAR_S, False)])
def test_the_ui_ends_when_the_clock_is_set_back(jump_s: float, is_over: bool) -> None:
    """The daemon remembers the later time for as long as it lives."""
    shown = [utc_now()]
    clock = SteadyClock(lambda: shown[0])
    shown[0] += dt.timedelta(seconds=jump_s)
    assert _is_set_back(clock) is is_over
