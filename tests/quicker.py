"""Work that libraries repeat, done once: what they answer is the same. Only for tests, which build homes and models by the dozen.

Measured on one building of the models (180 nodes of dbt): DuckDB has 5 % of the processor's time, dbt's contexts, events and types of
columns the rest. On a new home: Alembic imports a hundred migrations of Dagster's storage nine times.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


def _migrations(module: ModuleType) -> None:
    """One ScriptDirectory per folder."""
    read = module.ScriptDirectory.from_config
    known: dict[str, Any] = {}

    def from_config(config: Any) -> Any:
        location = config.get_main_option("script_location")
        if location not in known:
            known[location] = read(config)
        return known[location]

    module.ScriptDirectory.from_config = from_config


def _types_of_columns(module: ModuleType) -> None:
    """One tester per choice of columns: making one compiles the date words of a language."""
    build = cache(module.build_type_tester)
    module.build_type_tester = lambda columns, string_null_values=("null", ""): build(tuple(columns), tuple(string_null_values))


def _macros(module: ModuleType) -> None:
    """Every context of a node has all 540 macros: made without a chain of constructors, found without a search through five places."""
    generator, namespace, begin = module.MacroGenerator, module.MacroNamespace, module.MacroNamespace.__init__

    def add_macros(self: Any, macros: Iterable[Any], ctx: dict[str, Any]) -> None:
        for macro in macros:
            made = object.__new__(generator)
            made.__dict__ = {"context": ctx, "macro": macro, "node": self.node, "stack": self.thread_ctx}
            is_internal = macro.package_name in self.internal_package_names
            self._add_macro_to(self.internal_packages if is_internal else self.packages, macro, made)
            if not is_internal and macro.package_name == self.search_package:
                self.locals[macro.name] = made
            elif not is_internal and macro.package_name == self.root_package:
                self.globals[macro.name] = made

    def begin_flat(self: Any, **places: Any) -> None:
        begin(self, **places)
        self.flat = {}
        for place in reversed(tuple(self._search_order())):
            self.flat.update(place)

    module.MacroNamespaceBuilder.add_macros = add_macros
    namespace.__init__ = begin_flat
    namespace.__iter__ = lambda self: iter(self.flat)
    namespace.__getitem__ = lambda self, key: self.flat[key]


def _events(module: ModuleType) -> None:
    """Events of debugging are written nowhere: `model_project.QUIET`."""
    fire = module.EventManager.fire_event

    def fire_event(self: Any, e: Any, level: Any = None, node: Any = None, force_warn_or_error_handling: bool = False) -> None:
        if force_warn_or_error_handling or (level or e.level_tag()).value != "debug":
            fire(self, e, level, node, force_warn_or_error_handling)

    module.EventManager.fire_event = fire_event


_AFTER: dict[str, Callable[[ModuleType], None]] = {
    "alembic.script.base": _migrations,
    "dbt_common.clients.agate_helper": _types_of_columns,
    "dbt.context.macros": _macros,
    "dbt_common.events.event_manager": _events,
}


class _Finder(MetaPathFinder):
    """Changes these modules when they are imported; importing dbt for nothing takes seconds."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in _AFTER or not (spec := PathFinder.find_spec(name, path, target)) or not spec.loader:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _AFTER[name](module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def install() -> None:
    """For the rest of this process."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
