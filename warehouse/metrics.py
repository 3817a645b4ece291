"""The metrics of `models/metrics.yml` as the rest of the project takes them: the macro `rate`, docs/marts.md, the assistant.

Not here: what they are; dbt and MetricFlow read the same file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from warehouse.dbt_project import PROJECT


@dataclass(frozen=True, slots=True)
class Metric:
    """`mart`: where its columns are. `expression`: what is added up over rows; of a rate, (numerator, denominator)."""

    name: str
    mart: str
    expression: str | tuple[str, str]

    @property
    def sql(self) -> str:
        """Over any rows of the mart, grouped or not; NULL when there is nothing to divide by."""
        if isinstance(self.expression, str):
            return f"sum({self.expression})"
        part, whole = self.expression
        return f"sum({part}) / nullif(sum({whole}), 0)"


@cache
def metrics() -> Mapping[str, Metric]:
    """By name, in the order of the file."""
    declared: dict[str, list[dict[str, Any]]] = yaml.safe_load((PROJECT / "models" / "metrics.yml").read_text(encoding="utf-8"))
    measures = {
        measure["name"]: (model["model"].removeprefix("ref('").removesuffix("')"), measure["expr"])
        for model in declared["semantic_models"]
        for measure in model["measures"]
    }
    found: dict[str, Metric] = {}
    for metric in declared["metrics"]:
        of = metric["type_params"]
        names = [of["measure"]] if "measure" in of else [of["numerator"], of["denominator"]]
        mart, expression = measures[names[0]]
        found[metric["name"]] = Metric(metric["name"], mart, (expression, measures[names[1]][1]) if names[1:] else expression)
    return found
