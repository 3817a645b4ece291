"""Names of asset checks, as people read them in Dagster's lists."""

import re

from assets.models import check_name
from warehouse.models import ModelSettings

#: Words of small letters; Dagster's lists cut what is longer.
WORDS = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")
LONGEST = 30


def test_checks_have_short_names_that_tell_those_of_a_model_apart() -> None:
    tests = [node for node in ModelSettings().list_nodes() if node.is_test]
    names = {(test.relation, check_name(test)): test for test in tests}
    assert len(names) == len(tests)
    assert [name for _, name in names if len(name) > LONGEST or not WORDS.fullmatch(name)] == []
    assert [name for (_, name), test in names.items() if test.model in name or test.relation in name] == []


def test_a_check_says_in_its_description_what_its_name_is_short_for() -> None:
    assert [test.name for test in ModelSettings().list_nodes() if test.is_test and not test.description] == []
