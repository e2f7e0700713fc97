"""A database that is locked, crowded, killed while it folds its log, or full."""

import pytest
from chaos.scene import Ground
from chaos.tables import tables

from analysis.verdict import Holds

pytest_plugins = ("chaos.fixtures",)

TABLES = tables(lock_s=2)


@pytest.mark.parametrize("fault", TABLES)
def test_each_record_is_applied_once_whatever_the_database_goes_through(ground: Ground, fault: str) -> None:
    outcome = TABLES[fault](ground, 1)

    assert outcome.holds is Holds.TRUE, outcome.reasons
    assert (outcome.judged.lost, outcome.judged.duplicated) == (0, 0)
