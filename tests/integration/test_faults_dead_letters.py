"""Records that are no events arrive in the dead-letter topic, each with a source of its own."""

import pytest
from chaos.bad_records import BAD_RECORDS
from chaos.scene import Ground

from analysis.verdict import Holds

pytest_plugins = ("chaos.fixtures",)


@pytest.mark.parametrize("fault", BAD_RECORDS)
def test_bad_records_are_kept_and_sent_on(ground: Ground, fault: str) -> None:
    outcome = BAD_RECORDS[fault](ground, 5)

    assert outcome.holds is Holds.TRUE, outcome.reasons
    assert (outcome.judged.lost, outcome.judged.duplicated) == (0, 0)
