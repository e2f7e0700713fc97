"""Workers whose time is over: what they write late is refused."""

import pytest
from chaos.scene import Ground
from chaos.zombies import ZOMBIES

from analysis.verdict import Holds

pytest_plugins = ("chaos.fixtures",)


@pytest.mark.parametrize("fault", ZOMBIES)
def test_a_worker_whose_time_is_over_changes_nothing(ground: Ground, fault: str) -> None:
    outcome = ZOMBIES[fault](ground, 1)

    assert outcome.holds is Holds.TRUE, outcome.reasons
    assert (outcome.judged.lost, outcome.judged.duplicated) == (0, 0)
