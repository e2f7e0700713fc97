"""Topic to state: worker processes of one consumer group, each applying the partitions it owns."""
