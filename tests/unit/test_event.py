"""The state event: what is one, and what is refused with which reason."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from streams import state_event

from lanes.errors import BadEvent
from lanes.event import State, StateEvent, decode, encode, from_cells

LARGEST_INTEGER = 9223372036854775807
TEXT = st.text(min_size=1).filter(lambda text: "\0" not in text)


def value(**changes: object) -> bytes:
    """A valid record value with some of its fields changed."""
    fields: dict[str, object] = {
        "tracking_no": "TR-1",
        "line": "L1",
        "state": "accepted",
        "duration": 1,
        "order": 0,
    }
    return json.dumps(fields | changes).encode()


def cells(**changes: str) -> dict[str, str]:
    """A valid CSV row with some of its cells changed."""
    return {
        "tracking_no": "TR-1",
        "line": "L1",
        "state": "accepted",
        "duration": "1",
        "order": "0",
    } | changes


def reason_of_refusal(content: bytes | None) -> str:
    with pytest.raises(BadEvent) as refusal:
        decode(content)
    return str(refusal.value)


def test_the_unchanged_value_is_an_event() -> None:
    event = decode(value())
    assert (event.tracking_no, event.line, event.state, event.duration, event.order) == (
        "TR-1",
        "L1",
        State.ACCEPTED,
        1,
        0,
    )
    assert event.schema_version == 1


def test_the_version_is_the_rank_of_the_state() -> None:
    states = ["accepted", "transferred", "outForDelivery", "delivered"]
    assert [decode(value(state=state)).version for state in states] == [1, 2, 3, 4]


def test_an_event_is_written_with_every_field() -> None:
    assert json.loads(encode(state_event(7, shipment="TR-9", version=3, duration=2, line="L2"))) == {
        "tracking_no": "TR-9",
        "line": "L2",
        "state": "outForDelivery",
        "duration": 2,
        "order": 7,
        "schema_version": 1,
    }


@given(
    TEXT,
    TEXT,
    st.sampled_from(State),
    st.integers(1, LARGEST_INTEGER),
    st.integers(0, LARGEST_INTEGER),
)
def test_what_is_written_is_read_back(
    tracking_no: str, line: str, state: State, duration: int, order: int
) -> None:
    event = StateEvent(tracking_no=tracking_no, line=line, state=state, duration=duration, order=order)
    assert decode(encode(event)) == event


def test_unknown_fields_are_ignored() -> None:
    assert decode(value(carrier="post")) == decode(value())


def test_the_three_kinds_of_nothing_are_told_apart() -> None:
    assert reason_of_refusal(None) == "tombstone: the record has a null value"
    assert reason_of_refusal(b"") == "empty value: 0 bytes"
    assert reason_of_refusal(b"null").startswith("event: ")
    assert "found None" in reason_of_refusal(b"null")


@pytest.mark.parametrize(
    "content",
    [b"{not json", b"\xff\xfe", value() + b"x", b"[" * 100_000, value().replace(b"TR-1", b"\xff")],
    ids=["not json", "FF FE", "more behind it", "deep", "not utf-8"],
)
def test_what_is_not_json_is_refused_as_such(content: bytes) -> None:
    assert reason_of_refusal(content).startswith("Invalid JSON")


@pytest.mark.parametrize("content", [b"[]", b"7", b'"delivered"', b"true"])
def test_json_that_is_no_object_is_refused(content: bytes) -> None:
    assert reason_of_refusal(content).startswith("event: ")


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("state", "lost"),
        ("state", "Delivered"),
        ("state", 4),
        ("state", None),
        ("duration", 0),
        ("duration", -1),
        ("duration", True),
        ("duration", 1.0),
        ("duration", 1.5),
        ("duration", "1"),
        ("duration", None),
        ("duration", 2**63),
        ("order", -1),
        ("order", False),
        ("order", 0.0),
        ("order", "0"),
        ("order", 2**63),
        ("order", 10**4000),
        ("tracking_no", ""),
        ("tracking_no", None),
        ("tracking_no", 4821),
        ("tracking_no", "TR\0-1"),
        ("line", ""),
        ("line", "\0"),
        ("line", ["L1"]),
        ("schema_version", 2),
        ("schema_version", 0),
        ("schema_version", True),
        ("schema_version", 1.0),
        ("schema_version", "1"),
        ("schema_version", None),
    ],
)
def test_a_bad_field_is_refused_by_its_name_and_content(field: str, bad: object) -> None:
    reason = reason_of_refusal(value(**{field: bad}))
    assert reason.startswith(f"{field}: ")
    assert "(found " in reason
    assert "\n" not in reason
    assert len(reason) < 200


@pytest.mark.parametrize("field", ["tracking_no", "line", "state", "duration", "order"])
def test_a_missing_field_is_named(field: str) -> None:
    fields = json.loads(value())
    del fields[field]
    assert reason_of_refusal(json.dumps(fields).encode()) == f"{field}: missing"


def test_every_complaint_about_an_event_is_named() -> None:
    reason = reason_of_refusal(value(duration=0, order=-1, state="lost"))
    assert {part.split(":")[0] for part in reason.split("; ")} == {"state", "duration", "order"}


def test_the_largest_integer_of_a_database_is_taken() -> None:
    event = decode(value(duration=LARGEST_INTEGER, order=LARGEST_INTEGER))
    assert (event.duration, event.order) == (LARGEST_INTEGER, LARGEST_INTEGER)


def test_a_lone_surrogate_is_refused_wherever_it_comes_from() -> None:
    assert reason_of_refusal(value(tracking_no="\ud800")).startswith("Invalid JSON")
    with pytest.raises(BadEvent, match=r"^tracking_no: "):
        from_cells(cells(tracking_no="\udcff"))
    with pytest.raises(ValidationError):
        state_event(shipment="\ud800")


def test_a_row_of_cells_is_an_event() -> None:
    assert from_cells(cells()) == decode(value())
    assert from_cells(cells(schema_version="1")) == decode(value())


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("duration", "0"),
        ("duration", ""),
        ("duration", "one"),
        ("duration", "1.5"),
        ("duration", "true"),
        ("order", "-1"),
        ("order", "9223372036854775808"),
        ("state", "lost"),
        ("state", ""),
        ("tracking_no", ""),
        ("line", "\0"),
        ("schema_version", "2"),
        ("schema_version", ""),
    ],
)
def test_a_bad_cell_is_refused_by_its_column(field: str, bad: str) -> None:
    with pytest.raises(BadEvent, match=f"^{field}: "):
        from_cells(cells(**{field: bad}))


@pytest.mark.parametrize("tracking_no", ["007", "42", "4.20", "1e5", " TR-4821 ", "null", "NULL", "true"])
def test_a_tracking_number_in_a_cell_stays_the_text_it_is(tracking_no: str) -> None:
    assert from_cells(cells(tracking_no=tracking_no)).tracking_no == tracking_no


def test_an_event_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        state_event().order = 5  # type: ignore[misc]
