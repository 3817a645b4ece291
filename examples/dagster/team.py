"""Dagster assets of your dbt project, which run after `published` of marketing-sync."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
from dagster_dbt import (
    DagsterDbtTranslator,
    DagsterDbtTranslatorSettings,
    DbtCliResource,
    DbtProject,
    dbt_assets,
)

project = DbtProject(Path(__file__).parents[1] / "dbt")
project.prepare_if_dev()  # elsewhere, run `dbt parse` when the project has changed


class AfterPublished(DagsterDbtTranslator):
    """All sources are the published file: the models run when there is a new one."""

    def get_asset_key(self, dbt_resource_props: Mapping[str, Any]) -> dg.AssetKey:
        if dbt_resource_props["resource_type"] == "source":
            return dg.AssetKey("published")
        return dg.AssetKey(["team", dbt_resource_props["name"]])

    def get_automation_condition(
        self, dbt_resource_props: Mapping[str, Any]
    ) -> dg.AutomationCondition[Any]:
        return dg.AutomationCondition.eager()


settings = DagsterDbtTranslatorSettings(enable_duplicate_source_asset_keys=True)


@dbt_assets(manifest=project.manifest_path, dagster_dbt_translator=AfterPublished(settings))
def team_models(context: dg.AssetExecutionContext, dbt: DbtCliResource) -> Iterator[Any]:
    yield from dbt.cli(["build"], context=context).stream()


defs = dg.Definitions(
    assets=[team_models],
    resources={"dbt": DbtCliResource(project_dir=project)},
    sensors=[
        dg.AutomationConditionSensorDefinition(
            "after_published", target="*", default_status=dg.DefaultSensorStatus.RUNNING
        )
    ],
)
