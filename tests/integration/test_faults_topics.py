"""Topics and tables that change under a run: it goes on, or refuses by name."""

import pytest
from chaos.scene import Ground
from chaos.topics_changed import TOPICS_CHANGED

from analysis.verdict import Holds

pytest_plugins = ("chaos.fixtures",)


@pytest.mark.parametrize("fault", TOPICS_CHANGED)
def test_a_changed_topic_is_resumed_or_refused_by_name(ground: Ground, fault: str) -> None:
    outcome = TOPICS_CHANGED[fault](ground, 1)

    assert outcome.holds is Holds.TRUE, outcome.reasons
    assert (outcome.judged.lost, outcome.judged.duplicated) == (0, 0)
