"""What an older event does to the table that comes after a newer one, with the version check and without."""

import pytest
from marks import checks, dispatches
from streams import state_event
from trial import Raw, Trial, raw

from lanes.dispatch import Dispatch
from lanes.event import encode
from lanes.lesson import lesson_events

ALONE = {"batch.num.messages": 1}


@checks
@dispatches
def test_a_late_event_falls_behind_only_without_the_version_check(
    trial: Trial, dispatch: Dispatch, *, version_check: bool
) -> None:
    trial.make_topic(1)
    delivered, accepted = state_event(1, version=4), state_event(0, version=1)
    trial.send([raw(delivered), raw(accepted)], **ALONE)

    result = trial.consume(dispatch=dispatch, version_check=version_check)

    assert (result.totals.backward, result.totals.skipped) == (1, int(version_check))
    assert trial.states() == {"TR-1": "delivered" if version_check else "accepted"}
    found = trial.findings()
    assert found["backward_writes"] == 1
    assert found["wrong"] == ([] if version_check else ["TR-1"])
    assert found["skipped_steps"] == ({"TR-1": ["accepted"]} if version_check else {})
    (backward,) = found["backward"]
    assert backward["cause"] == "sent_out_of_order"


@checks
def test_an_event_is_judged_by_what_its_own_batch_wrote_before_it(
    trial: Trial, *, version_check: bool
) -> None:
    trial.make_topic(1)
    trial.send([raw(state_event(0, version=1))])
    trial.consume()
    trial.send([raw(state_event(2, version=3)), raw(state_event(1, version=2))])

    trial.consume(version_check=version_check)

    assert trial.states() == {"TR-1": "outForDelivery" if version_check else "transferred"}
    steps = trial.rows("select version, version_before, version_after, backward, skipped from history")
    assert steps[1:] == [
        (3, 1, 3, 0, 0),
        (2, 3, 3 if version_check else 2, 1, int(version_check)),
    ]


@checks
@dispatches
def test_an_equal_version_is_applied_and_is_no_backward_write(
    trial: Trial, dispatch: Dispatch, *, version_check: bool
) -> None:
    trial.make_topic(1)
    first, second = state_event(0, version=2, line="L1"), state_event(1, version=2, line="L2")
    trial.send([raw(first), raw(second)], **ALONE)

    result = trial.consume(dispatch=dispatch, version_check=version_check)

    assert (result.totals.in_history, result.totals.backward, result.totals.skipped) == (2, 0, 0)
    assert trial.rows("select line, arrival_order from shipment") == [("L2", 1)]
    assert trial.findings()["check"]["verdict"] == "true"


@checks
def test_the_same_event_at_two_offsets_is_applied_twice_and_named(
    trial: Trial, *, version_check: bool
) -> None:
    trial.make_topic(1)
    event = state_event(0, version=2)
    trial.send([raw(event), raw(event)])

    trial.consume(version_check=version_check)

    found = trial.findings()
    assert (found["applied"], found["backward_writes"], found["repeated_orders"]) == (2, 0, 1)
    assert found["check"]["verdict"] == "true"


@checks
def test_the_check_counts_from_the_run_that_has_it(trial: Trial, *, version_check: bool) -> None:
    trial.make_topic(1)
    trial.send([raw(state_event(2, version=3)), raw(state_event(1, version=2))])
    trial.consume(version_check=not version_check)
    trial.send([raw(state_event(0, version=1))])

    result = trial.consume(version_check=version_check)

    assert (result.totals.backward, result.totals.skipped) == (1, int(version_check))


def test_two_events_of_one_order_leave_the_last_state_open(trial: Trial) -> None:
    trial.make_topic(1)
    trial.send([raw(state_event(0, version=1)), raw(state_event(0, version=2))])
    trial.consume()

    found = trial.findings()

    assert found["undecided"] == ["TR-1"]
    assert found["check"]["verdict"] == "unknown"


def test_events_of_different_keys_in_one_shipment_are_called_mixed(trial: Trial) -> None:
    trial.make_topic(2)
    events = lesson_events()[:2]
    trial.send([raw(events[0]), Raw(encode(events[1]), b"another key", 1)])
    trial.consume()

    found = trial.findings()

    assert (found["key"], found["model"]["lesson_model"]) == ("mixed", None)


@pytest.mark.parametrize("duration", [1, 2**63 - 1])
def test_the_largest_numbers_pass_through_unchanged(trial: Trial, duration: int) -> None:
    trial.make_topic(1)
    trial.send([raw(state_event(2**63 - 1, duration=duration))])

    trial.consume()

    assert trial.rows("select arrival_order, duration from history") == [(2**63 - 1, duration)]
    assert trial.findings()["applied"] == 1
