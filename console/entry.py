"""The last line of defence of every command: errors become messages and exit codes here, and only here."""

import sys
from typing import NoReturn

import click

from lanes.errors import ConvoyError
from lanes.key import key_text

EXIT_ERROR = 1
EXIT_ANOMALY = 3
EXIT_UNKNOWN = 4
EXIT_INTERRUPTED = 130

EXIT_CODES_HELP = """\b
Exit codes:
  0  fine
  1  error
  2  wrong usage
  3  an anomaly was found
  4  the verdict is unknown
  130  interrupted before the end
"""


def run(command: click.Command, name: str) -> NoReturn:
    """Run a command as the process: its result on stdout, every error as text on stderr."""
    stdout = sys.stdout
    try:
        code = command.main(prog_name=name, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except ConvoyError as error:
        click.echo(message_of(error), err=True)
        code = EXIT_ERROR
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted.", err=True)
        code = EXIT_INTERRUPTED
    except SystemExit as exit_asked:
        # Both ask for exit code 1 when the reader of our stdout (`| head`) has what it wanted: rich from
        # inside its handler, click after it put another stdout in place.
        if sys.stdout is stdout and not isinstance(exit_asked.__context__, BrokenPipeError):
            raise
        code = 0
    sys.exit(code if isinstance(code, int) else 0)


def message_of(error: ConvoyError) -> str:
    """What happened, where in Kafka, and what to do: up to three lines."""
    lines = [f"Error: {error}"]
    place = position(error)
    if place:
        lines.append(f"  at {place}")
    if error.hint:
        lines.append(f"  {error.hint}")
    return "\n".join(lines)


def position(error: ConvoyError) -> str:
    """`topic[partition]@offset key`, as far as it is known; nothing where only the topic is."""
    if error.topic is None or error.partition is None:
        return ""
    place = f"{error.topic}[{error.partition}]"
    if error.offset is not None:
        place += f"@{error.offset}"
    if error.key is not None:
        place += f" {key_text(error.key)}"
    return place
