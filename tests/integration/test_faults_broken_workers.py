"""Workers that are broken on purpose: the checker accuses each of them within five seeds."""

import pytest
from chaos.accused import PROVOKE, accuse
from chaos.scene import Ground

from analysis.verdict import Holds

pytest_plugins = ("chaos.fixtures",)

SHOWS_IN = {
    "fence removed": "no write by a stale owner",
    "offset in a second transaction": "progress right behind what is done",
    "group commit before the database": "no record lost",
    "bad record swallowed": "no record lost",
    "epoch ignored": "no write by a stale owner",
}


@pytest.mark.parametrize("broken", PROVOKE)
def test_a_broken_worker_is_accused(ground: Ground, broken: str) -> None:
    outcome = accuse(broken, ground, 1)

    assert outcome.landed == 1, f"never accused: {outcome.reasons}"
    assert outcome.judged.holds is Holds.FALSE
    assert any(reason.startswith(SHOWS_IN[broken]) for reason in outcome.judged.reasons)
