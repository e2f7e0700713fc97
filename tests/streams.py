"""State events for tests: one constructor, and streams for Hypothesis."""

from collections.abc import Sequence

from hypothesis import strategies as st

from lanes.event import VERSION_OF, StateEvent

STATE_OF = {version: state for state, version in VERSION_OF.items()}


def state_event(
    order: int = 0, *, shipment: str = "TR-1", version: int = 1, duration: int = 1, line: str = "L1"
) -> StateEvent:
    """A valid event; name only what the test is about."""
    return StateEvent(
        tracking_no=shipment, line=line, state=STATE_OF[version], duration=duration, order=order
    )


@st.composite
def streams(
    draw: st.DrawFn, *, rising: bool = False, max_size: int = 25, most_ticks: int = 4
) -> list[StateEvent]:
    """At least one event, in arrival order; where `rising`, no shipment's version ever falls."""
    shipments = draw(st.lists(st.sampled_from("ABCDE"), min_size=1, max_size=max_size))
    size = len(shipments)
    versions = draw(st.lists(st.integers(1, 4), min_size=size, max_size=size))
    durations = draw(st.lists(st.integers(1, most_ticks), min_size=size, max_size=size))
    if rising:
        versions = _rising(shipments, versions)
    return [
        state_event(
            order, shipment=shipment, version=version, duration=duration, line=f"L{ord(shipment) % 2}"
        )
        for order, (shipment, version, duration) in enumerate(
            zip(shipments, versions, durations, strict=True)
        )
    ]


def _rising(shipments: Sequence[str], versions: Sequence[int]) -> list[int]:
    waiting = {
        shipment: sorted(v for s, v in zip(shipments, versions, strict=True) if s == shipment)
        for shipment in shipments
    }
    return [waiting[shipment].pop(0) for shipment in shipments]
