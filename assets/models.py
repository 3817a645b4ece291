"""The models as Dagster assets, their tests as asset checks, in one step after the reads.

The list of models comes from the compiled dbt project. `warehouse.models` builds them in this
process; another process would have to wait if this one has the file open. Not here: the settings
(`pipelines`)."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cache
from pathlib import Path
from typing import Any

import dagster as dg

from assets.materialize import report_check, report_table
from warehouse.connection import open_database
from warehouse.dbt_project import Node
from warehouse.masking import load_lineage
from warehouse.models import BuildReport, Outcome, Status, table_sizes
from warehouse.schema import columns_of

#: Builds the models of these names (all if there are none) in the home of a run's settings.
Build = Callable[[Any, Sequence[str]], BuildReport]

#: The schemas of models in the order in which data flows through them.
_FLOORS = ("staging", "history", "marts")

#: Tests that dbt names after model and columns: how such a name begins, and the name of the check.
#: Other tests have their own names.
_GENERIC = {
    "described_nulls_": "nulls_as_described",
    "shares_": "rates_between_0_and_1",
    "within_": "references_exist",
    "credits_sum_to_one_": "credits_sum_to_one",
}

#: How many columns are named in the description of a column made from them; the metadata has all.
_NAMED = 3


def model_assets(name: str, build: Build, nodes: Sequence[Node]) -> dg.AssetsDefinition:
    models = [node for node in nodes if not node.is_test]

    @dg.multi_asset(
        name=name,
        specs=_model_specs(models),
        check_specs=[_check_spec(node) for node in nodes if node.is_test],
        can_subset=True,
        required_resource_keys={"reader", "settings"},
    )
    def step(
        context: dg.AssetExecutionContext,
    ) -> Iterator[dg.MaterializeResult[Any] | dg.AssetCheckResult]:
        chosen_keys = context.selected_asset_keys
        selected = [node.name for node in models if _relation_key(node.relation) in chosen_keys]
        settings = context.resources.settings
        report = build(settings, selected if len(selected) < len(models) else ())
        yield from _report_outcomes(context, report, settings.warehouse_path)
        unchanged = report.with_status(Status.UNCHANGED)
        if unchanged:
            context.log.info(
                f"{len(unchanged)} of {len(report.outcomes)} models and tests were not run: "
                "nothing that they read changed"
            )
        for warning in report.warnings:
            context.log.warning(warning)
        if report.failure_summary:
            raise dg.Failure(report.failure_summary, allow_retries=False)

    return step


def _relation_key(relation: str) -> dg.AssetKey:
    """Schema and table, as in the file."""
    return dg.AssetKey(relation.split("."))


def _model_specs(models: Sequence[Node]) -> list[dg.AssetSpec]:
    """Groups are schema and area, such that data leaves them in one direction: a model that reads a
    mart is grouped with the marts."""
    by_relation = {node.relation: node for node in models}

    @cache
    def find_floor(relation: str) -> int:
        node = by_relation.get(relation)
        if node is None:
            return 0
        floors = map(find_floor, node.needs)
        return max(_FLOORS.index(node.schema), *floors, 0)

    return [
        dg.AssetSpec(
            _relation_key(node.relation),
            deps=[_relation_key(needed) for needed in node.needs],
            description=_describe_model(node),
            group_name=f"{_FLOORS[find_floor(node.relation)]}/{node.meta['area']}",
            kinds={"dbt", "duckdb"},
            code_version=hashlib.blake2b(
                f"{node.sql}\0{node.later_sql}".encode(), digest_size=10
            ).hexdigest(),
            metadata={
                "dagster/table_name": node.relation,
                "dagster/column_schema": dg.TableSchema(
                    [
                        dg.TableColumn(
                            name, description=f"{text} {_describe_origin(node, name)}".strip()
                        )
                        for name, text in node.columns.items()
                    ]
                ),
                "materialized as": node.kind,
            },
        )
        for node in models
    ]


def _describe_model(node: Node) -> str:
    """In Markdown: what it is, and for a mart the questions that it answers, each with a query."""
    asked = [
        f"**{question['ask']}**\n\n```sql\n{question['sql'].strip()}\n```"
        for question in node.meta.get("questions", ())
    ]
    return "\n\n".join([node.description, *asked])


def _describe_origin(node: Node, column: str) -> str:
    """The columns that a column is made from, in words; empty if they are unknown, or if it is made
    from none (a number of rows)."""
    origins = load_lineage()["made_of"].get(node.relation, {})
    sources: list[str] = origins.get(column, [])
    if not sources:
        return ""
    named = ", ".join(sources[:_NAMED])
    if len(sources) > _NAMED:
        named += f" and {len(sources) - _NAMED} more"
    return f"From {named}."


def check_name(test: Node) -> str:
    """A few words, e.g. `openings_narrow`: the test's name without that of its model, which has the
    check."""
    if test.key:
        return "unique_keys"
    name = test.name.removeprefix(f"{test.model}_")
    for beginning, words in _GENERIC.items():
        if name.startswith(beginning):
            return words
    return name


def _check_spec(test: Node) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        check_name(test),
        asset=_relation_key(test.relation),
        description=test.description or None,
        additional_deps=[_relation_key(needed) for needed in test.needs if needed != test.relation],
        blocking=not test.is_warning,
    )


def _report_outcomes(
    context: dg.AssetExecutionContext, report: BuildReport, warehouse: Path
) -> Iterator[dg.MaterializeResult[Any] | dg.AssetCheckResult]:
    """The outcome of every model and test, in their order."""
    settled: Set[dg.AssetKey] = context.resources.reader.find_settled(context)
    sizes = table_sizes(warehouse)
    with open_database(warehouse, read_only=True) as connection:
        columns = columns_of(connection)
    for outcome in report.outcomes:
        node = outcome.node
        key = _relation_key(outcome.node.relation)
        has_news = key not in settled or outcome.status is not Status.UNCHANGED
        if node.is_test:
            if has_news and outcome.status is not Status.SKIPPED:
                yield from report_check(context, _check_result(outcome))
        elif not has_news:
            yield dg.MaterializeResult(asset_key=key)
        elif outcome.status in (Status.OK, Status.UNCHANGED):
            settled -= {key}  # its tests follow
            yield from report_table(context, _model_metadata(outcome, sizes, columns))


def _model_metadata(
    outcome: Outcome, sizes: Mapping[str, int], columns: Mapping[str, Mapping[str, str]]
) -> dg.MaterializeResult[Any]:
    node = outcome.node
    types = columns.get(outcome.node.relation, {})
    found = [
        dg.TableColumn(name, kind, description=node.columns.get(name, ""))
        for name, kind in types.items()
    ]
    metadata = {"dagster/column_schema": dg.TableSchema(found), **_describe_duration(outcome)}
    if node.relation in sizes:
        metadata["dagster/row_count"] = sizes[node.relation]
    return dg.MaterializeResult(asset_key=_relation_key(node.relation), metadata=metadata)


def _describe_duration(outcome: Outcome) -> dict[str, Any]:
    if outcome.status is Status.UNCHANGED:
        return {"unchanged": True}
    return {"seconds": round(outcome.seconds, 2)}


def _check_result(outcome: Outcome) -> dg.AssetCheckResult:
    passed = outcome.status in (Status.OK, Status.UNCHANGED)
    severity = dg.AssetCheckSeverity.ERROR
    if outcome.status is Status.WARNED:
        severity = dg.AssetCheckSeverity.WARN
    metadata = _describe_duration(outcome)
    if outcome.status is not Status.UNCHANGED:
        metadata["rows that break it"] = outcome.failures
    return dg.AssetCheckResult(
        asset_key=_relation_key(outcome.node.relation),
        check_name=check_name(outcome.node),
        passed=passed,
        severity=severity,
        description=None if passed else outcome.sentence,
        metadata=metadata,
    )
