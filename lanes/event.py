"""The state event: what producers write and workers apply. JSON bytes enter or leave here."""

import reprlib
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
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


class StateEvent(BaseModel):
    """One change of one shipment's state; it erases the state before it.

    `duration` is in ticks, at least 1. `order` is the arrival order over the whole stream, from 0.
    Unknown fields are ignored, so that other producers may add their own; an unknown schema version is
    refused, because its fields may mean something else.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    tracking_no: Name
    line: Name
    state: State
    duration: Annotated[int, Field(gt=0, le=LARGEST_INTEGER)]
    order: Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]
    schema_version: Annotated[int, AfterValidator(_known_schema)] = SCHEMA_VERSION

    @property
    def version(self) -> int:
        """Rank of the state, 1 to 4."""
        return VERSION_OF[self.state]


def encode(event: StateEvent) -> bytes:
    """The record value: UTF-8 JSON of every field."""
    return event.model_dump_json().encode()


def decode(value: bytes | None) -> StateEvent:
    """The event in a record value; raises BadEvent with the reason.

    The three kinds of "nothing" are told apart: a null value (Kafka's tombstone), an empty value and the
    JSON text `null` are different mistakes of different producers. None of them is a state event.
    """
    if value is None:
        raise BadEvent("tombstone: the record has a null value")
    if not value:
        raise BadEvent("empty value: 0 bytes")
    try:
        return StateEvent.model_validate_json(value)
    except ValidationError as error:
        raise BadEvent(reason_of(error)) from error


def from_cells(cells: dict[str, str]) -> StateEvent:
    """The event in a row of text cells (CSV); raises BadEvent with the reason."""
    try:
        return StateEvent.model_validate_strings(cells)
    except ValidationError as error:
        raise BadEvent(reason_of(error)) from error


def reason_of(error: ValidationError) -> str:
    """Every complaint of pydantic in one line: `field: complaint (found value)`."""
    return "; ".join(_complaint(item) for item in error.errors(include_url=False, include_context=False))


def _complaint(item: ErrorDetails) -> str:
    where = ".".join(str(part) for part in item["loc"]) or "event"
    if item["type"] == "missing":
        return f"{where}: missing"
    if item["type"] == "json_invalid":
        return item["msg"]
    return f"{where}: {item['msg']} (found {reprlib.repr(item['input'])})"
