"""`convoy broker`: a broker in the foreground, for as long as the terminal wants one.

stdout carries one line, the bootstrap address, once the broker is ready; everything else is on stderr.
"""

import signal
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import click

from broker.embedded import EmbeddedBroker
from broker.jars import cached_jars, kafka_version
from broker.native import NativeBroker
from broker.running import RunningBroker
from broker.settings import Connection
from broker.topics import Topics
from console.entry import EXIT_CODES_HELP
from console.output import note

WATCH_PERIOD_S = 0.5


class NewTopicType(click.ParamType[tuple[str, int]]):
    """A topic to make: its name and its number of partitions, `shipment-events:12`."""

    name = "NAME:PARTITIONS"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Name and number."""
        if isinstance(value, tuple):
            return value
        name, _, partitions = str(value).rpartition(":")
        if not name or not partitions.isdecimal() or int(partitions) < 1:
            self.fail(f"{value!r} is not of the form shipment-events:12", param, ctx)
        return name, int(partitions)


@click.command(epilog=EXIT_CODES_HELP)
@click.argument("kind", type=click.Choice(["native", "embedded"]))
@click.option(
    "--port", type=click.IntRange(1, 65535), help="Port of the native broker.  [default: any free one]"
)
@click.option("--topic", "topics", type=NewTopicType(), multiple=True, help="Make this topic; repeatable.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the native broker keeps its data and log.  [default: a temporary directory]",
)
def broker(kind: str, port: int | None, topics: tuple[tuple[str, int], ...], data: Path | None) -> None:
    """Run a broker in the foreground until Ctrl-C or SIGTERM, and print its address when it is ready.

    native is Kafka itself on this machine's Java 17 or newer; Maven downloads its jars once. embedded is
    librdkafka's mock cluster: no Java, but no transactions and share groups either, and only the last 5 MB
    of each partition.

    \b
    Examples:
      convoy broker native --port 9092
      convoy broker native --data .broker --topic shipment-events:12
      convoy broker embedded --topic shipment-events:12
    """
    signal.signal(signal.SIGTERM, _interrupt)
    if kind == "native":
        _run_native(NativeBroker(data, port), topics)
    elif port is not None or data is not None:
        raise click.UsageError("The embedded broker takes no --port and no --data.")
    else:
        with EmbeddedBroker() as embedded:
            for name, partitions in topics:
                embedded.create_topic(name, partitions)
            _serve(embedded, "librdkafka's mock cluster")


def _run_native(native: NativeBroker, topics: tuple[tuple[str, int], ...]) -> None:
    if cached_jars() is None:
        note(f"Downloading Kafka {kafka_version()} with Maven, once ...")
    note("Starting Kafka ...")
    with native:
        admin = Topics(Connection(native.bootstrap_servers))
        for name, partitions in topics:
            admin.get_or_create(name, partitions, partitions)
        _serve(native, f"Kafka {kafka_version()}")


def _serve(running: RunningBroker, what: str) -> None:
    click.echo(running.bootstrap_servers)
    note(f"{what} is ready. Ctrl-C stops it.")
    # Being stopped is how this ends well; a broker that ends by itself is an error.
    with suppress(KeyboardInterrupt):
        while True:
            time.sleep(WATCH_PERIOD_S)
            running.check_running()
    note("Stopping ...")


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
