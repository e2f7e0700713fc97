"""A write by an owner whose time was over: told from the claims that the database keeps."""

from pathlib import Path

import pytest
from observations import TIME_US, Scene, record_at
from streams import state_event

from analysis.findings import find
from analysis.invariants import Evidence, no_stale_owner
from analysis.observation import Observation
from state.applying import Applier
from state.reading import Reading
from state.records import Claimed, Progress
from state.store import Store


def against(seen: Observation) -> list[str]:
    return no_stale_owner(Evidence(seen, find(seen)))


def claimed(*after_steps: int) -> list[Claimed]:
    """Claims on partition 0 by epochs 1, 2, ..., each behind a step of the history."""
    return [
        Claimed(0, epoch, f"worker {epoch}", step, TIME_US) for epoch, step in enumerate(after_steps, start=1)
    ]


@pytest.fixture
def scene() -> Scene:
    """Two events applied by epoch 1."""
    made = Scene()
    made.write_and_apply(state_event(0))
    made.write_and_apply(state_event(1, version=2))
    return made


def test_writes_before_the_next_claim_are_right(scene: Scene) -> None:
    row = scene.apply(scene.write(state_event(2, version=3)), owner_epoch=2)
    progress = {0: Progress(0, row.offset + 1, 2, "worker 2", -1)}

    assert against(scene.seen(claims=claimed(0, 2), progress=progress)) == []


def test_a_write_after_the_next_claim_is_stale_though_no_epoch_fell(scene: Scene) -> None:
    progress = {0: Progress(0, 2, 2, "worker 2", -1)}

    assert against(scene.seen(claims=claimed(0, 1), progress=progress)) == [
        "partition 0 offset 1 was written under epoch 1, after epoch 2 was given"
    ]


def test_claims_on_other_partitions_do_not_count(scene: Scene) -> None:
    other = [Claimed(1, 2, "worker 2", 0, TIME_US)]

    assert against(scene.seen(claims=[*claimed(0), *other])) == []


def test_the_database_keeps_each_claim_with_the_last_step_before_it(tmp_path: Path) -> None:
    db = tmp_path / "states.db"
    store = Store.open(db, "shipments", "id-1")
    run = store.start_run(1, version_check=False)
    claims = store.claim([0], "worker 0")
    Applier(store, run, 0, version_check=False).apply_owned([record_at(0, 0, state_event())], claims)
    store.claim([0, 1], "worker 1")
    store.close()

    with Reading(db) as reading:
        kept = [(c.partition, c.owner_epoch, c.owner, c.after_step) for c in reading.claims()]
    assert kept == [(0, 1, "worker 0", 0), (0, 2, "worker 1", 1), (1, 1, "worker 1", 1)]
