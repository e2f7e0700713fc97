"""The command `convoy`: every verb in the order in which a newcomer meets them."""

import click

from analysis.command import analyze
from console.entry import EXIT_CODES_HELP, run
from consumer.command import consume
from consumer.dead_letters_command import dead_letters
from convoy.broker import broker
from convoy.cost import cost
from convoy.lesson import lesson
from convoy.model import model
from convoy.soak import soak
from convoy.sweep import sweep
from convoy.where import where
from producer.command import produce

HELP = f"""Kafka partitions as lanes: what a key keeps in order, what that costs, what breaks without it.

\b
Start here:
  convoy lesson                      the lesson's arrangements live, beside the model
  convoy model                       what the model says, no broker needed
\b
On your own broker:
  convoy produce --key line          events to a topic
  convoy consume --until-caught-up   topic to database
  convoy analyze                     what happened, beside the model

{EXIT_CODES_HELP}"""


class InOrder(click.Group):
    """A group that lists its commands as they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Names in the order of adding."""
        return list(self.commands)


@click.group(cls=InOrder, help=HELP)
@click.version_option(package_name="sequential-convoy", prog_name="convoy")
def convoy() -> None:
    """The group of all commands."""


for command in (lesson, model, produce, consume, analyze, dead_letters, sweep, cost, where, broker, soak):
    convoy.add_command(command)


def main() -> None:
    """Entry point of the `convoy` script."""
    run(convoy, "convoy")
