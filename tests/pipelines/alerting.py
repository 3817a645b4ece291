"""The sensor of alerts, with its cursor and a clock."""

import datetime as dt
from typing import Any

import dagster as dg

from home.settings import Settings
from marketing_api.clock import utc_now
from pipelines.sensors import alert_sensor
from tests.fixtures import Alerts


class Sensor:
    """The sensor, which `looks` at the end of some hours; `posted` is what it posted in them."""

    def __init__(self, instance: dg.DagsterInstance, settings: Settings) -> None:
        self.instance, self.settings = instance, settings
        self.cursor: str | None = None
        self.passed = dt.timedelta()

    def __call__(self, hours: float = 0.0) -> list[dict[str, Any]]:
        self.passed += dt.timedelta(hours=hours)
        Alerts.bodies.clear()
        sensor = alert_sensor(self.settings, lambda: utc_now() + self.passed)
        with dg.build_sensor_context(self.instance, cursor=self.cursor) as context:
            sensor(context)
            self.cursor = context.cursor
        return list(Alerts.bodies)
