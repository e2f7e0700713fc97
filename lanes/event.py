"""The events that producers write and workers apply. JSON bytes enter or leave here."""

import reprlib
from enum import StrEnum
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from lanes.errors import BadEvent

SCHEMA_VERSION = 1
LARGEST_INTEGER = 2**63 - 1  # what an SQLite column holds


class State(StrEnum):
    """The four states of a shipment, named as the lesson names them."""

    ACCEPTED = "accepted"
    TRANSFERRED = "transferred"
    OUT_FOR_DELIVERY = "outForDelivery"
    DELIVERED = "delivered"


VERSION_OF = {state: rank for rank, state in enumerate(State, start=1)}
"""The version of a state is its rank: accepted 1 ... delivered 4."""


def _without_nul(text: str) -> str:
    """Databases cut text at NUL or refuse it, and two shipments would read as one."""
    if "\0" in text:
        raise PydanticCustomError("nul", "String should not hold a NUL character")
    return text


def _known_schema(version: int) -> int:
    """A whole number and not `Literal[1]`, which takes `true` and `1.0` for 1 and refuses a cell `1`."""
    if version != SCHEMA_VERSION:
        raise PydanticCustomError("schema_version", "Input should be 1, the only version known")
    return version


Name = Annotated[str, Field(min_length=1), AfterValidator(_without_nul)]


class _Event(BaseModel):
    """What every event has. `duration` is in ticks; `order` is the arrival order over the whole stream.

    Unknown fields are ignored, so that other producers may add their own; an unknown schema version is
    refused, because its fields may mean something else.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    tracking_no: Name
    line: Name
    duration: Annotated[int, Field(gt=0, le=LARGEST_INTEGER)]
    order: Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]
    schema_version: Annotated[int, AfterValidator(_known_schema)] = SCHEMA_VERSION


class StateEvent(_Event):
    """One change of one shipment's state. It erases the state before it, so its order counts."""

    state: State

    @property
    def version(self) -> int:
        """Rank of the state, 1 to 4."""
        return VERSION_OF[self.state]


class HistoryEvent(_Event):
    """A scanner pass: only appended to the history. It erases nothing, so its order does not count."""

    scan: Name
    """Where it was scanned, or by what."""


Event = StateEvent | HistoryEvent


def _kind_of(fields: object) -> str:
    """An event without a state but with a scan is a history event; anything else is held to be a state."""
    if isinstance(fields, HistoryEvent):
        return "history"
    is_scan = isinstance(fields, dict) and fields.get("scan") and not fields.get("state")
    return "history" if is_scan else "state"


_EVENT: TypeAdapter[Event] = TypeAdapter(
    Annotated[
        Annotated[StateEvent, Tag("state")] | Annotated[HistoryEvent, Tag("history")],
        Discriminator(_kind_of),
    ]
)


def encode(event: Event) -> bytes:
    """The record value: UTF-8 JSON of every field."""
    return event.model_dump_json().encode()


def decode(value: bytes | None) -> Event:
    """The event in a record value; raises BadEvent with the reason.

    The three kinds of "nothing" are told apart: a null value (Kafka's tombstone), an empty value and the
    JSON text `null` are different mistakes of different producers. None of them is an event.
    """
    if value is None:
        raise BadEvent("tombstone: the record has a null value")
    if not value:
        raise BadEvent("empty value: 0 bytes")
    try:
        # Nearly all are state events, and whatever passes as one is one: asking first is three times faster.
        return StateEvent.model_validate_json(value)
    except ValidationError:
        pass
    try:
        return _EVENT.validate_json(value)
    except ValidationError as error:
        raise BadEvent(reason_of(error)) from error


def from_cells(cells: dict[str, str]) -> Event:
    """The event in a row of text cells (CSV); raises BadEvent with the reason."""
    try:
        return _EVENT.validate_strings(cells)
    except ValidationError as error:
        raise BadEvent(reason_of(error)) from error


def reason_of(error: ValidationError) -> str:
    """Every complaint of pydantic in one line: `field: complaint (found value)`."""
    return "; ".join(_complaint(item) for item in error.errors(include_url=False, include_context=False))


def _complaint(item: ErrorDetails) -> str:
    # The first part of a place is the kind of event, which is not in the data.
    where = ".".join(str(part) for part in item["loc"][1:]) or "event"
    if item["type"] == "missing":
        return f"{where}: missing"
    if item["type"] == "json_invalid":
        return item["msg"]
    return f"{where}: {item['msg']} (found {reprlib.repr(item['input'])})"
