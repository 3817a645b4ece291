"""Names of models for `select`: with all that they are made from, or all that is made from them."""

from collections.abc import Mapping

from warehouse.models import ModelSettings


def selected(*words: str) -> list[str]:
    """`name`, `+name` (with all that it is made from), `name+` (with all that is made from it)."""
    nodes = [node for node in ModelSettings().list_nodes() if not node.is_test]
    relations = {node.name: node.relation for node in nodes}
    above = {node.relation: set(node.needs) for node in nodes}
    below = {relation: {other for other, needs in above.items() if relation in needs} for relation in above}
    found: set[str] = set()
    for word in words:
        relation = relations[word.strip("+")]
        found.add(relation)
        found |= _reached(relation, above) if word.startswith("+") else set()
        found |= _reached(relation, below) if word.endswith("+") else set()
    return [name for name, relation in relations.items() if relation in found]


def _reached(start: str, steps: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = steps.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found
