"""A few damaged files of a real home (`damage` has them all), and that every file of it has a way out."""

import pytest

from tests.attack.damage import FILES, bench, cases, try_one


@pytest.mark.slow
def test_damaged_files_of_a_home_have_a_way_out() -> None:
    with bench("sync", "--only", "business", "lists", "contacts", "timelines") as made:
        found = {name for name, _ in cases(made.home)}
        assert len(found) >= len(FILES) // 2
        for name, way in (
            ("archive/ledger.sqlite", "bit"),
            ("archive/ledger.sqlite", "empty"),
            ("warehouse.duckdb", "cut"),
            ("outbox.sqlite", "empty"),
        ):
            assert try_one(made, name, way, seed=1).lost == ()
