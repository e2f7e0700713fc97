"""What must be true of topic, history, dead letters and offsets: one pure function an invariant.

Each takes the evidence and returns what speaks against it, in sentences with positions; an empty list
means that it holds.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from analysis.findings import Findings, Position
from analysis.observation import Observation
from lanes.dispatch import Dispatch
from lanes.event import StateEvent
from lanes.key import KeyChoice
from lanes.outcome import judge
from state.records import Claimed, DeadLetter, HistoryRow


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is judged. `acknowledged` are the positions that a producer was promised, where it kept them."""

    seen: Observation
    found: Findings
    acknowledged: frozenset[Position] | None = None


Check = Callable[[Evidence], list[str]]


def none_lost(evidence: Evidence) -> list[str]:
    """Every record that the database has gone past is in the history or among the dead letters."""
    against = [f"{_at(p)} was passed without a trace" for p in evidence.found.lost]
    if evidence.acknowledged is not None:
        topic = {(record.partition, record.offset) for record in evidence.seen.records}
        against += [
            f"{_at(p)} was acknowledged and is not in the topic"
            for p in sorted(evidence.acknowledged - topic)
            if p[1] >= evidence.seen.ranges[p[0]].low
        ]
    return against


def none_twice(evidence: Evidence) -> list[str]:
    """No position is in the history more than once."""
    counts = Counter((row.partition, row.offset) for row in evidence.seen.history)
    return [f"{_at(p)} is in the history {count} times" for p, count in counts.items() if count > 1]


def none_both(evidence: Evidence) -> list[str]:
    """No position is applied and an open dead letter."""
    return [f"{_at(p)} is applied and a dead letter" for p in evidence.found.twice]


def none_invented(evidence: Evidence) -> list[str]:
    """What is in the history or among the dead letters is in the topic, as far back as the topic goes.

    A compacted topic loses records in between, so there it says nothing.
    """
    seen = evidence.seen
    if seen.compacted:
        return []
    topic = {(record.partition, record.offset) for record in seen.records}
    done = {(row.partition, row.offset) for row in seen.history}
    done |= {(letter.partition, letter.offset) for letter in seen.dead_letters}
    return [
        f"{_at(p)} is in the database and not in the topic"
        for p in sorted(done - topic)
        if p[0] not in seen.ranges or seen.ranges[p[0]].low <= p[1]
    ]


def progress_fits(evidence: Evidence) -> list[str]:
    """Each partition's next offset is right behind the last record done under an owner, and in the topic."""
    seen = evidence.seen
    last: dict[int, int] = {}
    owned: list[HistoryRow | DeadLetter] = [*seen.history, *seen.dead_letters]
    for done in owned:
        if done.owner_epoch is not None:
            last[done.partition] = max(done.offset, last.get(done.partition, -1))
    against = []
    for partition, offset in sorted(last.items()):
        progress = seen.progress.get(partition)
        next_offset = -1 if progress is None or progress.next_offset is None else progress.next_offset
        if next_offset != offset + 1:
            against.append(
                f"partition {partition} goes on at offset {next_offset}, its last record done is {offset}"
            )
        elif partition in seen.ranges and next_offset > seen.ranges[partition].high:
            against.append(f"partition {partition} goes on at offset {next_offset}, beyond the topic's end")
        elif partition in seen.ranges and progress is not None:
            here, low = progress.reached, seen.ranges[partition].low
            if here < low:
                against.append(
                    f"partition {partition} goes on at offset {here}, the topic begins at {low}: records "
                    "were deleted before they were applied"
                )
    return against


def in_offset_order(evidence: Evidence) -> list[str]:
    """Under owners, each partition's records are applied in offset order; a retry has no owner."""
    before: dict[int, int] = {}
    against = []
    for row in _owned(evidence.seen.history):
        if row.offset <= before.get(row.partition, -1):
            against.append(f"{_at((row.partition, row.offset))} was applied after {before[row.partition]}")
        before[row.partition] = row.offset
    return against


def no_stale_owner(evidence: Evidence) -> list[str]:
    """Owner epochs never fall in the order applied, nor exceed the partition's own, nor outlive a claim."""
    newest: dict[int, int] = {}
    against = [
        f"{_at((row.partition, row.offset))} was written under epoch {row.owner_epoch}, "
        f"after epoch {claim.owner_epoch} was given"
        for row, claim in written_too_late(evidence.seen)
    ]
    for row in _owned(evidence.seen.history):
        epoch = row.owner_epoch or 0
        progress = evidence.seen.progress.get(row.partition)
        if epoch < newest.get(row.partition, 0):
            against.append(
                f"{_at((row.partition, row.offset))} was written under epoch {epoch}, "
                f"after epoch {newest[row.partition]}"
            )
        elif progress is None or epoch > progress.owner_epoch:
            against.append(f"{_at((row.partition, row.offset))} was written under epoch {epoch}, never given")
        newest[row.partition] = max(epoch, newest.get(row.partition, 0))
    for letter in evidence.seen.dead_letters:
        progress = evidence.seen.progress.get(letter.partition)
        if letter.owner_epoch is not None and (progress is None or letter.owner_epoch > progress.owner_epoch):
            place = _at((letter.partition, letter.offset))
            against.append(f"{place} was kept under epoch {letter.owner_epoch}, never given")
    return against


def written_too_late(seen: Observation) -> Iterator[tuple[HistoryRow, Claimed]]:
    """History rows of an owner whose partition was claimed by a newer one before, with that claim."""
    next_claim = {
        (claim.partition, claim.owner_epoch - 1): claim for claim in seen.claims if claim.owner_epoch > 1
    }
    for row in _owned(seen.history):
        claim = next_claim.get((row.partition, row.owner_epoch or 0))
        if claim is not None and row.step > claim.after_step:
            yield row, claim


def rows_fit_history(evidence: Evidence) -> list[str]:
    """Each shipment's row is the last event that its history wrote."""
    return [f"{name}'s row is not what its history gives" for name in evidence.found.fold_differs]


def rows_fit_topic(evidence: Evidence) -> list[str]:
    """Each shipment's row is the fold of the topic, where one partition and one owner order its events.

    Left out: share dispatch, shipments over several partitions, those with an event that is not applied
    yet or came by a retry, and those whose events the topic no longer has.
    """
    seen = evidence.seen
    if not seen.runs or any(run.dispatch is Dispatch.SHARE for run in seen.runs):
        return []
    checks = {run.version_check for run in seen.runs}
    left_out = set(evidence.found.split_shipments) | _unsettled(seen)
    rows = {row.tracking_no: row.state for row in seen.shipments}
    if len(checks) > 1 or any(here.low > 0 for here in seen.ranges.values()):
        return []
    folded = fold(seen, version_check=checks.pop())
    return [
        f"{name} is {rows.get(name)}, the topic gives {state}"
        for name, state in sorted(folded.items())
        if name not in left_out and rows.get(name) != state
    ]


def fold(seen: Observation, *, version_check: bool) -> dict[str, str]:
    """Shipment to the state that its records give in offset order."""
    version: dict[str, int] = {}
    state: dict[str, str] = {}
    for record in seen.records:
        event = record.event
        if not isinstance(event, StateEvent):
            continue
        before = version.get(event.tracking_no)
        _, skipped = judge(event.version, before, version_check=version_check)
        if not skipped:
            version[event.tracking_no] = event.version
            state[event.tracking_no] = event.state.value
    return state


def _unsettled(seen: Observation) -> set[str]:
    """Shipments with an event that is in the topic and not in the history, or in it by a retry."""
    applied = {(row.partition, row.offset) for row in seen.history}
    letters = {(letter.partition, letter.offset) for letter in seen.dead_letters}
    settled = applied - letters
    waiting = {
        record.event.tracking_no
        for record in seen.records
        if record.event is not None and (record.partition, record.offset) not in settled
    }
    return waiting | {row.tracking_no for row in seen.history if (row.partition, row.offset) in letters}


def lanes_keep_order(evidence: Evidence) -> list[str]:
    """Where lanes keep a shipment's order, nothing goes backward beyond what the stream itself does."""
    found = evidence.found
    if not keeps_order(found):
        return []
    extra = _beyond_the_stream(found)
    if not extra:
        return []
    first = extra[0]
    return [
        f"{len(extra)} backward writes in lanes by {found.lane_key}, first {first.tracking_no} to "
        f"{first.state} at {_at((first.partition, first.offset))}"
    ]


def _beyond_the_stream(found: Findings) -> list[HistoryRow]:
    """Backward writes that one worker in arrival order would not have had.

    Event by event: by their numbers, one that the run brought could hide behind one that it spared.
    """
    own = Counter((event.tracking_no, event.order) for event in found.serial.backward)
    beyond = []
    for row in found.backward:
        if row.tracking_no in found.gone:
            continue
        event = (row.tracking_no, row.arrival_order)
        if own[event]:
            own[event] -= 1
        else:
            beyond.append(row)
    return beyond


def final_states_right(evidence: Evidence) -> list[str]:
    """Where lanes keep a shipment's order, its row is the state of its last event."""
    found = evidence.found
    if not keeps_order(found) or found.not_yet_applied:
        return []
    return [
        f"{wrong.tracking_no} is {wrong.state}, should be {wrong.expected}"
        for wrong in found.wrong
        if wrong.tracking_no not in found.serial.wrong and wrong.tracking_no not in found.gone
    ]


def keeps_order(found: Findings) -> bool:
    """Whether a shipment has one lane: by tracking number, or by a line that it never changes.

    A gate keeps order within its partition, so not that of a shipment over several.
    """
    if found.shared and found.split_shipments:
        return False
    if found.lane_key == KeyChoice.LINE:
        return not found.line_changes
    return found.lane_key == KeyChoice.TRACKING_NO


def group_offset_follows(evidence: Evidence) -> list[str]:
    """The group's committed offset is never ahead of the database."""
    against = []
    for partition, committed in sorted(evidence.seen.committed.items()):
        progress = evidence.seen.progress.get(partition)
        here = progress.reached if progress else 0
        if committed > here:
            against.append(f"partition {partition}: group at {committed}, database at {here}")
    return against


def _owned(history: Iterable[HistoryRow]) -> list[HistoryRow]:
    return [row for row in history if row.owner_epoch is not None]


def _at(position: Position) -> str:
    return f"partition {position[0]} offset {position[1]}"


INVARIANTS: dict[str, Check] = {
    "no record lost": none_lost,
    "none applied twice": none_twice,
    "none applied and dead letter both": none_both,
    "nothing that the topic does not have": none_invented,
    "progress right behind what is done": progress_fits,
    "partitions in offset order": in_offset_order,
    "no write by a stale owner": no_stale_owner,
    "rows as their history gives": rows_fit_history,
    "rows as the topic gives": rows_fit_topic,
    "lanes keep their order": lanes_keep_order,
    "final states right in lanes": final_states_right,
    "group offset not ahead of database": group_offset_follows,
}


def open_questions(found: Findings) -> list[str]:
    """What cannot be told yet, in sentences."""
    questions = []
    if found.not_yet_applied:
        questions.append(f"{found.not_yet_applied} records are not yet applied")
    if found.parked:
        questions.append(f"{found.parked} records are parked behind dead letters of their keys")
    if found.undecided:
        names = ", ".join(found.undecided[:10])
        questions.append(f"arrival orders used twice leave the last state open: {names}")
    return questions


def by_invariant(evidence: Evidence) -> dict[str, list[str]]:
    """Invariant to what speaks against it."""
    against: dict[str, list[str]] = defaultdict(list)
    for name, check in INVARIANTS.items():
        against[name] = check(evidence)
    return dict(against)
