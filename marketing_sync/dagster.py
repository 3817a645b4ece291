"""The service in a Dagster project of your own: a resource, and a decorator for assets (docs/python.md).

Whoever wants the whole sync takes its code location, `marketing_sync.definitions`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import dagster as dg

from marketing_api.errors import MarketingApiError, Transient
from marketing_sync.client import Client, Row, find_operation


class MarketingService(dg.ConfigurableResource):  # type: ignore[type-arg]
    """One account of the service, under its rate limit.

    MarketingService(url="https://HOST/1", key=dg.EnvVar("MARKETING_API_KEY"))
    """

    url: str
    key: str
    max_rate: float | None = None

    @contextmanager
    def client(self) -> Iterator[Client]:
        """A client for the length of a `with`. Its errors are a dg.Failure: one that comes back at every try
        is not tried again."""
        try:
            with Client(self.url, self.key, max_rate=self.max_rate) as client:
                yield client
        except MarketingApiError as problem:
            raise dg.Failure(str(problem), allow_retries=isinstance(problem, Transient)) from None


def service_asset(
    operation: str, /, *, resource: str = "marketing", spec: dg.AssetSpec | None = None, **parameters: Any
) -> Callable[[Callable[[Iterator[Row]], Any]], dg.AssetsDefinition]:
    """An asset of what a read returns: the function is given its rows, of all pages, and its value goes to
    the I/O manager.

    `resource`: under which key the definitions have the MarketingService. `spec`: key, group, owners and so
    on; otherwise the function's name and docstring. Raises InvalidCall when the parameters do not fit the
    operation, as soon as the module is imported."""
    find_operation(operation, is_read=True).bind(**parameters)

    def decorate(function: Callable[[Iterator[Row]], Any]) -> dg.AssetsDefinition:
        given = spec or dg.AssetSpec(function.__name__, description=function.__doc__)

        @dg.multi_asset(
            name=given.key.to_python_identifier(),
            outs={"result": dg.AssetOut.from_spec(given.merge_attributes(kinds={"api"}))},
            required_resource_keys={resource},
        )
        def asset(context: dg.AssetExecutionContext) -> dg.Output[Any]:
            service: MarketingService = getattr(context.resources, resource)
            numbers = count()
            with service.client() as client:
                rows = client.rows(operation, **parameters)
                value = function(row for row, _ in zip(rows, numbers, strict=False))
                metadata = {
                    "dagster/row_count": next(numbers),
                    "requests": client.requests,
                    "waited for the rate limit (s)": round(client.waited_s, 1),
                }
            return dg.Output(value, metadata=metadata)

        return asset

    return decorate
