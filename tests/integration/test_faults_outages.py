"""Brokers and producers that go away under load: what was acknowledged is applied once."""

import pytest
from chaos.outages import outages
from chaos.scene import Ground

from analysis.verdict import Holds

pytest_plugins = ("chaos.fixtures",)

OUTAGES = outages(freeze_s=3)


@pytest.mark.parametrize("fault", OUTAGES)
def test_what_was_acknowledged_is_applied_once(ground: Ground, fault: str) -> None:
    outcome = OUTAGES[fault](ground, 1)

    assert outcome.holds is Holds.TRUE, outcome.reasons
    assert (outcome.judged.lost, outcome.judged.duplicated) == (0, 0)
