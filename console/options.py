"""Options that several commands share, each written once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from lanes.key import KeyChoice
from lanes.partitioner import Partitioner

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

DEFAULT_TOPIC = "shipment-events"
DEFAULT_BOOTSTRAP = "localhost:9092"


def broker_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--bootstrap-servers` and `--config`: how to reach the broker."""
    command = click.option(
        "--config",
        "config_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A file of librdkafka properties (name=value), for SASL, TLS and tuning.",
    )(command)
    return click.option(
        "--bootstrap-servers",
        envvar="CONVOY_BOOTSTRAP_SERVERS",
        help=f"Brokers to start from.  [default: {DEFAULT_BOOTSTRAP}; env: CONVOY_BOOTSTRAP_SERVERS]",
    )(command)


topic_option: Decorator = click.option("--topic", default=DEFAULT_TOPIC, show_default=True, help="The topic.")

db_option: Decorator = click.option(
    "--db",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("convoy.db"),
    show_default=True,
    help="The SQLite file that holds state, history and progress.",
)

json_option: Decorator = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")

verbose_option: Decorator = click.option(
    "-v", "--verbose", count=True, help="Log to stderr: -v the lifecycle, -vv each record."
)

key_option: Decorator = click.option(
    "--key",
    type=click.Choice([choice.value for choice in KeyChoice]),
    default=KeyChoice.TRACKING_NO.value,
    show_default=True,
    help="What records are keyed by.",
)

partitioner_option: Decorator = click.option(
    "--partitioner",
    type=click.Choice([rule.value for rule in Partitioner]),
    default=Partitioner.MURMUR2.value,
    show_default=True,
    help="How a key finds its partition: murmur2_random as Java does, consistent_random as librdkafka does.",
)


events_file_option: Decorator = click.option(
    "--file",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Events, .jsonl or .csv.  [default: the lesson's 20 events]",
)

live_tick_option: Decorator = click.option(
    "--tick-ms", type=click.IntRange(100, 10_000), default=150, show_default=True, help="Length of a tick."
)

live_seed_option: Decorator = click.option(
    "--seed", default=7, show_default=True, help="Deals records without a key over partitions."
)


class NumberList(click.ParamType[list[int]]):
    """Whole numbers of at least 1, separated by commas: `3,6,12`."""

    name = "N,N,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        """The list, in the order given."""
        if isinstance(value, list):
            return value
        try:
            numbers = [int(part) for part in str(value).split(",")]
        except ValueError:
            self.fail(f"{value!r} is not a list of whole numbers such as 3,6,12", param, ctx)
        if min(numbers) < 1:
            self.fail(f"{value!r} holds a number below 1", param, ctx)
        return numbers
