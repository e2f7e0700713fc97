"""Key lanes to partition lanes: which keys meet in one partition."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LaneMap:
    """Where each key went. A key in several partitions has lost its order: it is `split`."""

    partitions_of: dict[str, list[int]]
    """Key to the partitions that hold it, both sorted."""

    @property
    def key_lanes(self) -> int:
        """Number of distinct keys."""
        return len(self.partitions_of)

    @property
    def partition_lanes(self) -> int:
        """Number of partitions that hold a key."""
        return len({p for partitions in self.partitions_of.values() for p in partitions})

    @property
    def collisions(self) -> dict[int, list[str]]:
        """Partition to its keys, where it holds more than one: several key lanes, one partition lane."""
        keys_in: dict[int, list[str]] = defaultdict(list)
        for key, partitions in self.partitions_of.items():
            for partition in partitions:
                keys_in[partition].append(key)
        return {p: keys_in[p] for p in sorted(keys_in) if len(keys_in[p]) > 1}

    @property
    def split(self) -> dict[str, list[int]]:
        """Keys found in more than one partition."""
        return {key: partitions for key, partitions in self.partitions_of.items() if len(partitions) > 1}


def lane_map(partitions_of: Mapping[str, set[int]]) -> LaneMap:
    """A map from observed pairs of key and partition."""
    return LaneMap({key: sorted(partitions_of[key]) for key in sorted(partitions_of)})
