"""Which columns of the models are derived from personal ones and from links, and which columns each is made
of, by the models' SQL.

A column is personal when any column that its value is made of is personal. Conditions, counts and the order
of rows carry no value. What cannot be resolved counts as personal. Not here: what is personal in `source` and
`sync` (declared there), the file with the result (`test_lineage`), who uses it (`warehouse.masking`)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, build_scope

from warehouse.dbt_project import Node
from warehouse.tables import ALL_TABLES

#: Personal columns and links, as `table.column`, that a value is made of.
Sources = frozenset[str]
NOTHING: Sources = frozenset()
UNKNOWN, DECLARED = frozenset({"not known"}), frozenset({"declared"})

#: Relation (`schema.table`) → its columns.
Derived = dict[str, dict[str, Sources]]
Types = Mapping[str, Mapping[str, str]]


def listed(derived: Derived) -> dict[str, dict[str, list[str]]]:
    """The same in an order, for JSON."""
    return {
        relation: {name: sorted(found) for name, found in columns.items()}
        for relation, columns in sorted(derived.items())
    }


def follow(models: Iterable[Node], types: Types) -> Derived:
    """The columns of the models. `types`: relation → column → type.

    Models read one another, and incremental ones themselves: all are read again until nothing is added.
    """
    scopes = scopes_of(models, types)
    made = {node.relation: dict.fromkeys(types[node.relation], NOTHING) for node, _ in scopes}
    known = dict(made)
    for table in ALL_TABLES:
        known[table.qualified] = {
            column.name: frozenset({f"{table.name}.{column.name}"})
            if column.is_personal or column.is_link
            else NOTHING
            for column in table.columns
        }
    before: Derived = {}
    while before != made:
        before = {relation: dict(columns) for relation, columns in made.items()}
        for node, scope in scopes:
            _add(node, scope, known)
    return made


def scopes_of(models: Iterable[Node], types: Types) -> list[tuple[Node, Scope | None]]:
    """Each form of each model's SQL with its names resolved; None where they cannot be."""
    schema: dict[str, Any] = {}
    for relation, columns in types.items():
        name, _, table = relation.partition(".")
        schema.setdefault(name, {})[table] = columns

    def scope(sql: str) -> Scope | None:
        try:
            tree = sqlglot.parse_one(sql, dialect="duckdb")
            return build_scope(
                qualify(
                    tree,
                    schema=schema,
                    dialect="duckdb",
                    validate_qualify_columns=False,
                    quote_identifiers=False,
                )
            )
        except SqlglotError:
            return None

    return [
        (node, scope(sql)) for node in models for sql in dict.fromkeys((node.sql, node.later_sql or node.sql))
    ]


def _add(node: Node, scope: Scope | None, known: Derived) -> None:
    """What is declared not to be personal goes no further."""
    found = dict(Reading(known).outputs(scope)) if scope else {}
    columns, declared = known[node.relation], node.declared
    for name in columns:
        sources = found.get(name, UNKNOWN)
        if name not in declared:
            columns[name] |= sources
        elif declared[name]:
            columns[name] |= sources or DECLARED


class Reading:
    """What the columns of one query are made of."""

    #: Whatever they look at, their value is true, false or a number of rows.
    tells_nothing: tuple[type[exp.Expr], ...] = (
        exp.Predicate,
        exp.Connector,
        exp.Not,
        exp.LogicalAnd,
        exp.LogicalOr,
        exp.Count,
        exp.CountIf,
    )
    #: Parts of an expression that choose or order values and are none.
    chooses: Mapping[type[exp.Expr], tuple[str, ...]] = {
        exp.Window: ("partition_by", "order"),
        exp.Filter: ("expression",),
        exp.Case: ("this",),
        exp.If: ("this",),
        exp.Comprehension: ("condition",),
    }

    def __init__(self, known: Derived) -> None:
        self._known = known
        self._done: dict[int, list[tuple[str, Sources]]] = {}

    def outputs(self, scope: Scope) -> list[tuple[str, Sources]]:
        """(name, made of) of each column."""
        if id(scope) not in self._done:
            self._done[id(scope)] = list(self._read(scope))
        return self._done[id(scope)]

    def _read(self, scope: Scope) -> Iterator[tuple[str, Sources]]:
        expression = scope.expression
        if not isinstance(expression, exp.SetOperation):
            selected = expression.selects if isinstance(expression, exp.Query) else ()
            yield from ((part.alias_or_name, self._made_of(part, scope)) for part in selected)
            return
        left, right = (self.outputs(side) for side in scope.set_operation_scopes)
        if expression.args.get("by_name"):
            both = dict(left), dict(right)
            yield from (
                (name, both[0].get(name, NOTHING) | both[1].get(name, NOTHING)) for name in both[0] | both[1]
            )
        else:
            yield from ((name, one | other) for (name, one), (_, other) in zip(left, right, strict=True))

    def _made_of(self, node: exp.Expr, scope: Scope) -> Sources:
        if isinstance(node, self.tells_nothing):
            return NOTHING
        if isinstance(node, exp.Column):
            return self._column(node, scope)
        if isinstance(node, exp.Query):
            inner = next((one for one in scope.subquery_scopes if one.expression is node.unnest()), None)
            return UNKNOWN if inner is None else NOTHING.union(*(found for _, found in self.outputs(inner)))
        chooses = self.chooses.get(type(node), ())
        parts = (part for part in node.iter_expressions() if part.arg_key not in chooses)
        return NOTHING.union(*(self._made_of(part, scope) for part in parts))

    def _column(self, column: exp.Column, scope: Scope) -> Sources:
        source = scope.sources.get(column.table)
        if isinstance(source, exp.Table):
            if isinstance(source.this, exp.Func):  # a function in place of a table
                return self._made_of(source.this, scope)
            return self._known.get(f"{source.db}.{source.name}", {}).get(column.name, UNKNOWN)
        if isinstance(source, Scope):
            if not isinstance(source.expression, exp.Query):  # values, unnest
                return self._made_of(source.expression, source)
            return dict(self.outputs(source)).get(column.name, UNKNOWN)
        return NOTHING if _is_variable(column) else UNKNOWN


def _is_variable(column: exp.Column) -> bool:
    """Of a lambda or comprehension; what it goes through stands beside it."""
    node, name = column.parent, column.table or column.name
    while node is not None:
        if isinstance(node, exp.Lambda) and name in {variable.name for variable in node.expressions}:
            return True
        if isinstance(node, exp.Comprehension) and name == node.expression.name:
            return True
        node = node.parent
    return False
