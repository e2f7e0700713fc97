"""Every command has help with an example and a line of help for each option, and stands in the README."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from convoy.main import convoy

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command below a group with its full name, groups too."""
    for command in group.commands.values():
        full_name = f"{name} {command.name}"
        yield full_name, command
        if isinstance(command, click.Group):
            yield from commands(command, full_name)


ALL = [("convoy", convoy), *commands(convoy, "convoy")]
by_name = pytest.mark.parametrize(("name", "command"), ALL, ids=[name for name, _ in ALL])


def help_of(name: str, command: click.Command) -> str:
    return command.get_help(click.Context(command, info_name=name))


def test_the_commands_are_those_that_a_user_is_told_of() -> None:
    assert {"lesson", "model", "produce", "consume", "analyze", "cost", "where", "broker"} <= set(
        convoy.commands
    )


@by_name
def test_a_command_has_help_with_an_example_of_its_own(name: str, command: click.Command) -> None:
    first, *rest = [line.strip() for line in help_of(name, command).splitlines() if line.strip()]
    assert first.startswith(f"Usage: {name}")
    assert any(line == name or line.startswith(f"{name} ") for line in rest)


@by_name
def test_every_option_of_a_command_has_help(name: str, command: click.Command) -> None:
    without = [
        option.name
        for option in command.params
        if isinstance(option, click.Option) and not option.hidden and not option.help
    ]
    assert without == []
    assert "--help" in help_of(name, command)


@by_name
def test_a_command_has_one_line_for_the_list_of_commands(name: str, command: click.Command) -> None:
    assert command.get_short_help_str(), name


@by_name
def test_a_command_stands_in_the_readme(name: str, command: click.Command) -> None:
    *_, group, own_name = ["", *name.split()]
    whole = name in README
    below_its_group = any(
        f"convoy {group}" in line and f"`{own_name}`" in line for line in README.splitlines()
    )
    assert whole or below_its_group, command
