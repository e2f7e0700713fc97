"""Members that come and go faster than the group settles, under each protocol."""

import pytest
from chaos.scene import Ground
from chaos.storms import STORMS

from analysis.verdict import Holds

pytest_plugins = ("chaos.fixtures",)


@pytest.mark.parametrize("fault", STORMS)
def test_each_record_is_applied_once_while_members_come_and_go(ground: Ground, fault: str) -> None:
    outcome = STORMS[fault](ground, 8)

    assert outcome.holds is Holds.TRUE, outcome.reasons
    assert (outcome.judged.lost, outcome.judged.duplicated) == (0, 0)
