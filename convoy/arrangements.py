"""The arrangements that `convoy lesson` runs live, each with the model that predicts it."""

from convoy.live import LivePlan
from lanes.dispatch import Dispatch
from lanes.key import KeyChoice
from lanes.lesson import lesson_events, lesson_events_with_scans


def lesson_plans(workers: int) -> list[LivePlan]:
    """The lesson's four under its own dispatcher: a share group, with a gate where there are lanes."""
    events = lesson_events()
    return [
        LivePlan("free", events, KeyChoice.NONE, Dispatch.SHARE, workers=workers),
        LivePlan("convoy", events, KeyChoice.TRACKING_NO, Dispatch.SHARE, workers=workers),
        LivePlan("convoy-line", events, KeyChoice.LINE, Dispatch.SHARE, workers=workers),
        LivePlan(
            "version-stamp", events, KeyChoice.NONE, Dispatch.SHARE, workers=workers, version_check=True
        ),
    ]


def kafka_plans(workers: int, seed: int) -> list[LivePlan]:
    """The same four under Kafka's own: a consumer group, lanes by partition."""
    events = lesson_events()
    group = Dispatch.GROUP
    return [
        LivePlan("free", events, KeyChoice.NONE, group, 5, workers, seed=seed),
        LivePlan("convoy", events, KeyChoice.TRACKING_NO, group, 5, workers),
        LivePlan("convoy-line", events, KeyChoice.LINE, group, 8, workers),
        LivePlan("version-stamp", events, KeyChoice.NONE, group, 5, workers, seed=seed, version_check=True),
    ]


def selective_plans(workers: int) -> list[LivePlan]:
    """Seven events a shipment: free, everything in the convoy, and only what erases a state in it."""
    events = lesson_events_with_scans()
    key = KeyChoice.TRACKING_NO
    return [
        LivePlan("free", events, KeyChoice.NONE, Dispatch.SHARE, workers=workers),
        LivePlan("whole convoy", events, key, Dispatch.SHARE, workers=workers),
        LivePlan("selective convoy", events, key, Dispatch.SHARE, workers=workers, selective=True),
    ]
