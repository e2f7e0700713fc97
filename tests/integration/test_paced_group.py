"""Paced runs in group dispatch: wall-clock ticks and outcomes beside the Kafka model."""

import pytest
from trial import Trial

from lanes.key import KeyChoice
from lanes.lesson import lesson_events
from lanes.model import kafka_figures
from lanes.schedule import ticks

TICK_US = 150_000


@pytest.mark.parametrize(
    ("key", "partitions", "workers", "expected_ticks"),
    [
        (KeyChoice.TRACKING_NO, 1, 2, 32),
        (KeyChoice.TRACKING_NO, 3, 2, 18),
        (KeyChoice.TRACKING_NO, 5, 4, 11),
        (KeyChoice.TRACKING_NO, 8, 8, 12),
        (KeyChoice.LINE, 3, 4, 32),
        (KeyChoice.LINE, 5, 2, 19),
        (KeyChoice.LINE, 8, 4, 14),
    ],
)
def test_a_keyed_run_takes_the_ticks_of_the_kafka_model(
    trial: Trial, key: KeyChoice, partitions: int, workers: int, expected_ticks: int
) -> None:
    trial.make_topic(partitions)
    trial.produce(key=key)

    result = trial.consume(workers, tick_us=TICK_US)

    shares = sorted(map(len, result.assignment.values()))
    assert (sum(shares), len(shares)) == (partitions, workers)
    assert shares[-1] - shares[0] <= 1
    report = trial.report()
    model = kafka_figures(lesson_events(), workers, partitions, key)
    assert ticks(report.beside.live) == report.beside.kafka.tick == model.tick == expected_ticks
    assert (report.found.backward, report.found.wrong) == ([], [])
    assert report.verdict.holds.value == "true"


@pytest.mark.parametrize("seed", [1, 2])
def test_a_free_run_is_what_the_kafka_model_says_of_its_partitions(trial: Trial, seed: int) -> None:
    trial.make_topic(5)
    trial.produce(key=KeyChoice.NONE, seed=seed)

    trial.consume(workers=4, tick_us=TICK_US)

    report = trial.report()
    model = report.beside.kafka
    assert ticks(report.beside.live) == model.tick
    assert len(report.found.backward) == model.backward_writes > 0
    assert [wrong.tracking_no for wrong in report.found.wrong] == model.wrong
    assert {backward.cause.name for backward in report.backward} == {"NO_KEY"}


def test_a_version_check_skips_what_the_kafka_model_says(trial: Trial) -> None:
    trial.make_topic(5)
    trial.produce(key=KeyChoice.NONE, seed=1)

    trial.consume(workers=4, tick_us=TICK_US, version_check=True)

    report = trial.report()
    model = report.beside.kafka
    assert (len(report.found.backward), report.found.skipped) == (model.backward_writes, model.skipped)
    assert (report.found.wrong, model.wrong) == ([], [])
