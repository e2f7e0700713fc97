"""From a key to its partition, by the two rules that Kafka producers use.

The hashes are the functions of librdkafka, which the producer uses as well, so a prediction cannot
drift from what the client does.
"""

from enum import StrEnum

import confluent_kafka


class Partitioner(StrEnum):
    """A named rule; the names are librdkafka's values for its setting `partitioner`."""

    MURMUR2 = "murmur2_random"
    """Java's default for records with a key, the empty key included."""

    CRC32 = "consistent_random"
    """librdkafka's default; an empty key counts as no key and goes anywhere."""

    def partition_of(self, key: bytes | None, partitions: int) -> int | None:
        """The partition of a key, 0 to `partitions` - 1; None where the rule picks one at random."""
        if key is None:
            return None
        if self is Partitioner.MURMUR2:
            return confluent_kafka.murmur2(key, partitions)
        return confluent_kafka.consistent(key, partitions) if key else None
