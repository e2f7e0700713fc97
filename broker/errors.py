"""What can go wrong between us and Kafka."""

from lanes.errors import ConvoyError


class BrokerUnreachable(ConvoyError):
    """Nothing answered at `address` within the deadline."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(
            f"no Kafka broker answers at {address}: {reason}",
            hint="Start one (`docker compose up` or `convoy broker native`) or name another with "
            "--bootstrap-servers. A listener that speaks another protocol does not answer either (--config).",
        )
        self.address = address


class BrokerRefused(ConvoyError):
    """A broker answered a request with an error."""


class BadConfigFile(ConvoyError):
    """A line of the --config file is no property, or names a setting that the program decides."""


class TopicMissing(ConvoyError):
    """The topic does not exist."""

    def __init__(self, topic: str, address: str) -> None:
        super().__init__(
            f"topic {topic} does not exist on {address}",
            hint="Write to it first with `convoy produce`, or name another with --topic.",
            topic=topic,
        )


class TopicDiffers(ConvoyError):
    """The topic exists, but not as the caller needs it."""
