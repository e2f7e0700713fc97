"""What to do with a record that is no event, and what that does to order."""

from enum import StrEnum


class OnBadRecord(StrEnum):
    """Three policies. Under each the record is kept whole, with its reason and position."""

    SKIP = "skip"
    """Its partition goes on. The shipment's later events are applied past the gap."""

    PARK_KEY = "park-key"
    """Later records of the same key are kept behind it, in order, until it is retried; other keys go on."""

    HALT_PARTITION = "halt-partition"
    """Its partition stops before it, other partitions go on; nothing is ever applied past it."""
