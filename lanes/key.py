"""The choice of partition key: what a record is keyed by decides its lane."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum

from lanes.event import Event, HistoryEvent


class KeyChoice(StrEnum):
    """What a record is keyed by."""

    TRACKING_NO = "tracking-no"
    LINE = "line"
    NONE = "none"

    def value_of(self, event: Event) -> str | None:
        """The event's key as text, None where records carry no key."""
        match self:
            case KeyChoice.TRACKING_NO:
                return event.tracking_no
            case KeyChoice.LINE:
                return event.line
            case KeyChoice.NONE:
                return None


def lane_value(event: Event, key: KeyChoice, *, selective: bool) -> str | None:
    """The lane that an event needs; None where it needs none.

    Selective, only an event that erases a previous value has an order to keep: the lesson's rule.
    """
    if selective and isinstance(event, HistoryEvent):
        return None
    return key.value_of(event)


def key_text(key: bytes) -> str:
    """A key for people: its text, in quotes where that could be misread; other bytes as hex:..."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return f"hex:{key.hex()}"
    plain = text.isprintable() and text == text.strip() and text and not text.startswith("hex:")
    return text if plain else repr(text)


def look_alikes(keys: Iterable[str]) -> list[list[str]]:
    """Groups of different keys that a reader would take for one.

    They differ only in case, outer spaces, Unicode form or characters that show nothing (a byte order mark,
    a zero-width space). They are different lanes, because Kafka hashes bytes. They are named, never merged.
    """
    groups: dict[str, set[str]] = defaultdict(set)
    for key in keys:
        groups[_look(key)].add(key)
    return sorted(sorted(group) for group in groups.values() if len(group) > 1)


def _look(key: str) -> str:
    visible = "".join(char for char in key if unicodedata.category(char) != "Cf")
    # Folding case can undo composition (a Greek iota with two accents), hence the second normalization.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", visible).casefold()).strip()
