"""What was asked of a run, and what one worker of it is started with."""

from dataclasses import dataclass
from pathlib import Path

from broker.settings import Connection
from consumer.pacing import Pace
from lanes.bad_records import OnBadRecord
from lanes.dispatch import Dispatch
from lanes.key import KeyChoice
from state.records import Source


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What to run. `group` is None for the database's own group."""

    connection: Connection
    topic: str
    db: Path
    workers: int = 4
    group: str | None = None
    version_check: bool = False
    until_caught_up: bool = False
    dispatch: Dispatch = Dispatch.GROUP
    gate: KeyChoice = KeyChoice.NONE
    """In share dispatch: wait for earlier events of the same key."""
    selective: bool = False
    """Let history events pass the gate."""
    tick_us: int | None = None
    """Simulate each event's duration with ticks of this length; None for full speed."""
    ties_seed: int | None = None
    """Draw the order of writes within a tick from this seed; None for arrival order."""
    on_bad_record: OnBadRecord = OnBadRecord.SKIP
    verbose: int = 0


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """One worker of a run. `pace` is None for work at full speed."""

    asked: RunPlan
    source: Source
    run: int
    number: int
    pace: Pace | None
