"""The models with a home's settings: what a step of Dagster's and the command line build. Not here: building (`warehouse.models`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipelines import stage
from pipelines.settings import Settings
from pipelines.waiting import tell
from warehouse.models import BuildReport, ModelSettings, build

if TYPE_CHECKING:
    import dagster as dg


#: Their step in Dagster's runs.
MODELS_STEP = "models"


class Models:
    """`report` is what came of building them last; None before."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.report: BuildReport | None = None

    def build(self, select: Sequence[str] = ()) -> BuildReport:
        """Build and test them, see `warehouse.models.build`."""
        settings = self._settings
        with stage.stage("models and tests"):
            self.report = build(
                settings.warehouse_path,
                model_settings(settings),
                select=select,
                deadline_s=settings.lock_seconds,
                on_wait=tell,
                on_node=stage.tell,
            )
        return self.report

    @property
    def problem(self) -> str:
        """What went wrong with them; empty when nothing did."""
        return "they were not built" if self.report is None else self.report.problem

    def assets(self) -> dg.AssetsDefinition:
        """Their step in Dagster."""
        from assets.models import model_assets  # takes seconds to import: only what has models does

        return model_assets(MODELS_STEP, self.build, self._settings.warehouse_path)


def model_settings(settings: Settings) -> ModelSettings:
    return ModelSettings(
        attribution_hours=settings.attribution_hours,
        timezone=settings.timezone,
        zones={account.account: account.timezone for account in settings.accounts if account.timezone},
        memory=settings.models_memory,
    )
