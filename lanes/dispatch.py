"""How work reaches workers."""

from enum import StrEnum


class Dispatch(StrEnum):
    """`group`: a worker owns partitions. `share`: a free worker takes the next record."""

    GROUP = "group"
    SHARE = "share"
