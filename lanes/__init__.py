"""Events, keys, partitions and the two tick models. Pure: no file, no broker, no clock."""
