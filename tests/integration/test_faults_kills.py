"""Workers that die at each point of their work: each record is applied once all the same."""

import pytest
from chaos.kills import KILLS
from chaos.scene import Ground

from analysis.verdict import Holds

pytest_plugins = ("chaos.fixtures",)


@pytest.mark.parametrize("fault", KILLS)
def test_each_record_is_applied_once_whatever_point_a_worker_dies_at(ground: Ground, fault: str) -> None:
    outcome = KILLS[fault](ground, 1)

    assert outcome.holds is Holds.TRUE, outcome.reasons
    assert (outcome.judged.lost, outcome.judged.duplicated) == (0, 0)
