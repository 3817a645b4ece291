"""The models as Dagster assets, their tests as asset checks, in one step behind the reads.

Lineage, groups and checks come from dbt's manifest through dagster-dbt; the building is `warehouse.models`, in this process: dbt as a
child process would have to wait for the file that this one may have open. Not here: with which settings (`pipelines`).

Importing this takes seconds (dbt), so only what shows or runs models does.
"""

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import dagster as dg
from dagster_dbt import DagsterDbtTranslator, DbtProject, dbt_assets

from warehouse.dbt_internals import Status, manifest_path
from warehouse.models import BuildReport, table_columns, table_sizes

#: Builds the models of these names (all when there are none) of the home.
Build = Callable[[Sequence[str]], BuildReport]

#: The schemas of models in the order in which data flows through them.
_FLOORS = ("staging", "history", "marts")


class Translator(DagsterDbtTranslator):
    """Names of models in Dagster: keys are schema and table, as in the file; groups are nested by schema and area.

    `checks`: dbt's unique id of a test → its check, of all tests translated so far.
    """

    def __init__(self) -> None:
        super().__init__()
        self.checks: dict[str, dg.AssetCheckKey] = {}

    def get_asset_key(self, dbt_resource_props: Mapping[str, Any]) -> dg.AssetKey:
        """`source/contacts` for dbt's sources too, which joins the models to the reads."""
        if dbt_resource_props["resource_type"] == "source":
            return dg.AssetKey([dbt_resource_props["source_name"], dbt_resource_props["name"]])
        return dg.AssetKey([dbt_resource_props["schema"], dbt_resource_props["alias"]])

    def get_group_name(self, dbt_resource_props: Mapping[str, Any]) -> str | None:
        """E.g. `marts/contacts`."""
        if dbt_resource_props["resource_type"] == "source":
            return str(dbt_resource_props["source_name"])
        area = dbt_resource_props["config"]["meta"].get("area")
        return f"{dbt_resource_props['schema']}/{area}" if area else str(dbt_resource_props["schema"])

    def get_metadata(self, dbt_resource_props: Mapping[str, Any]) -> Mapping[str, Any]:
        """The table by the name that queries give it, without the file's."""
        return {**super().get_metadata(dbt_resource_props), "dagster/table_name": ".".join(self.get_asset_key(dbt_resource_props).path)}

    def get_description(self, dbt_resource_props: Mapping[str, Any]) -> str:
        """The description alone: the SQL stands in the repository."""
        return str(dbt_resource_props["description"])

    def get_asset_check_spec(
        self, asset_spec: dg.AssetSpec, manifest: Mapping[str, Any], unique_id: str, project: DbtProject | None
    ) -> dg.AssetCheckSpec | None:
        """With the test's description."""
        spec = super().get_asset_check_spec(asset_spec, manifest, unique_id, project)
        if spec is None:
            return None
        self.checks[unique_id] = spec.key
        return spec._replace(description=manifest["nodes"][unique_id].get("description") or None)


@cache
def _translator() -> Translator:
    """One for all: it remembers what it has translated."""
    return Translator()


def model_assets(name: str, build: Build, warehouse: Path) -> dg.AssetsDefinition:
    """The step that builds and tests the models of the file `warehouse`. Raises ProjectBroken."""
    manifest: Mapping[str, Any] = json.loads(manifest_path().read_bytes())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")

        @dbt_assets(
            manifest=manifest,
            name=name,
            exclude="resource_type:unit_test",
            dagster_dbt_translator=_translator(),
        )
        def step(context: dg.AssetExecutionContext) -> Iterator[dg.Output[None] | dg.AssetCheckResult]:
            models = {node["name"]: _key(manifest, id_) for id_, node in manifest["nodes"].items() if id_.startswith("model.")}
            selected = [name for name, key in models.items() if key in context.selected_asset_keys]
            report = build(selected if context.is_subset else ())
            yield from _events(context, manifest, report, warehouse)
            for warning in report.warnings:
                context.log.warning(warning)
            if report.problem:
                raise dg.Failure(report.problem, allow_retries=False)

    return _in_the_flow(step)


def _in_the_flow(step: dg.AssetsDefinition) -> dg.AssetsDefinition:
    """With groups that data leaves in one direction only: a model that reads a mart stands with the marts, whatever its schema."""
    specs = step.specs_by_key

    @cache
    def floor(key: dg.AssetKey) -> int:
        if key not in specs:
            return 0
        return max([_FLOORS.index(key.path[0]), *(floor(dep.asset_key) for dep in specs[key].deps)])

    def placed(spec: dg.AssetSpec) -> dg.AssetSpec:
        area = str(spec.group_name).partition("/")[2]
        return spec.replace_attributes(group_name=f"{_FLOORS[floor(spec.key)]}/{area}")

    return step.map_asset_specs(placed)


def _key(manifest: Mapping[str, Any], unique_id: str) -> dg.AssetKey:
    return _translator().get_asset_spec(manifest, unique_id, None).key


def _events(
    context: dg.AssetExecutionContext, manifest: Mapping[str, Any], report: BuildReport, warehouse: Path
) -> Iterator[dg.Output[None] | dg.AssetCheckResult]:
    """What became of every model and test, in their order."""
    sizes, columns = table_sizes(warehouse), table_columns(warehouse)
    for outcome in report.outcomes:
        if outcome.is_test:
            check = _translator().checks.get(outcome.unique_id)
            if check is not None and check in context.selected_asset_check_keys and outcome.status is not Status.SKIPPED:
                yield dg.AssetCheckResult(
                    asset_key=check.asset_key,
                    check_name=check.name,
                    passed=outcome.status is Status.OK,
                    severity=dg.AssetCheckSeverity.WARN if outcome.status is Status.WARNED else dg.AssetCheckSeverity.ERROR,
                    description=outcome.sentence if outcome.status is not Status.OK else None,
                    metadata={"rows that break it": outcome.failures or 0, "seconds": round(outcome.seconds, 2)},
                )
        elif outcome.status is Status.OK:
            key = _key(manifest, outcome.unique_id)
            table = (key.path[0], key.path[-1])
            metadata: dict[str, Any] = {
                "seconds": round(outcome.seconds, 2),
                "dagster/column_schema": dg.TableSchema(
                    [dg.TableColumn(name, kind, description=comment) for name, kind, comment in columns.get(table, [])]
                ),
            }
            if table in sizes:
                metadata["dagster/row_count"] = sizes[table]
            yield dg.Output(None, output_name=key.to_python_identifier(), metadata=metadata)
