"""The shape of the code: who may import whom, how long files and functions are, what is not left behind."""

import ast
import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]

MAY_IMPORT = {
    "lanes": set(),
    "console": {"lanes"},
    "broker": {"lanes"},
    "state": {"lanes"},
    "producer": {"lanes", "console", "broker", "state"},
    "consumer": {"lanes", "console", "broker", "state"},
    "analysis": {"lanes", "console", "broker", "state"},
    "convoy": {"lanes", "console", "broker", "state", "producer", "consumer", "analysis"},
}
"""Room to the other rooms that it may import. The stages meet at the topic and at the database only."""

LONGEST_FILE = 400
LONGEST_FUNCTION = 70

NOT_OURS = {"__pycache__", "build", "dist"}
HIDDEN_AND_OURS = {".ci", ".gitignore"}

MODULES = sorted(path for room in MAY_IMPORT for path in (TOP / room).rglob("*.py"))


def named(path: Path) -> str:
    return str(path.relative_to(TOP))


def files(folder: Path = TOP) -> Iterator[Path]:
    """Every file of the project, without what git ignores."""
    for path in sorted(folder.iterdir()):
        if path.name in NOT_OURS or path.name.endswith(".egg-info"):
            continue
        if path.name.startswith(".") and path.name not in HIDDEN_AND_OURS:
            continue
        if path.is_dir():
            yield from files(path)
        elif not fnmatch(path.name, "*.db*"):
            yield path


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def rooms_imported(path: Path) -> set[str]:
    """The project's rooms that a module imports, wherever in it."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{named(path)}:{node.lineno}: a relative import"
            assert node.module is not None
            found.add(node.module.split(".")[0])
    return found & MAY_IMPORT.keys()


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_a_room_imports_only_the_rooms_that_it_may(path: Path) -> None:
    room = path.relative_to(TOP).parts[0]
    assert rooms_imported(path) - {room} <= MAY_IMPORT[room]


def test_the_rooms_are_the_packages_that_there_are_and_that_are_installed_and_type_checked() -> None:
    settings = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]
    packages = {path.parent.name for path in TOP.glob("*/__init__.py")}
    assert packages == set(MAY_IMPORT)
    assert set(settings["setuptools"]["packages"]) == packages
    assert set(settings["mypy"]["packages"]) == packages


def test_a_package_has_no_packages_inside_because_only_those_listed_are_installed() -> None:
    assert [named(path) for room in MAY_IMPORT for path in (TOP / room).glob("*/*.py")] == []


def test_every_file_of_a_package_that_is_no_module_is_package_data() -> None:
    data = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    found = [path for room in MAY_IMPORT for path in files(TOP / room) if path.suffix != ".py"]
    assert "lesson.jsonl" in {path.name for path in found}
    left_out = [
        named(path)
        for path in found
        if not any(fnmatch(path.name, pattern) for pattern in data.get(path.parent.name, []))
    ]
    assert left_out == []


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_a_file_can_be_read_at_one_go(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


def test_no_function_is_too_long() -> None:
    long = [
        f"{named(path)}:{node.lineno}: {node.name} has {length} lines"
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or 0) - node.lineno + 1) > LONGEST_FUNCTION
    ]
    assert long == []


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(tree_of(path))


def test_nothing_is_printed_past_the_console() -> None:
    printed = [
        f"{named(path)}:{node.lineno}"
        for path in MODULES
        if path.parent.name != "console"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printed == []


def test_no_file_is_named_for_not_knowing_where_things_belong() -> None:
    vague = {"utils", "util", "helpers", "helper", "misc", "common"}
    assert [named(path) for path in files() if path.stem in vague] == []


def found_in_files(pattern: str) -> list[str]:
    """Places in the project's text files where a pattern is found."""
    wanted = re.compile(pattern)
    places = []
    for path in files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        places += [
            f"{named(path)}:{number}: {line.strip()}"
            for number, line in enumerate(text.splitlines(), start=1)
            if wanted.search(line)
        ]
    return places


def test_the_search_finds_what_there_is() -> None:
    assert any(place.startswith("pyproject.toml:") for place in found_in_files(r"^\[tool\.mypy\]"))
    assert any(place.startswith(".ci/run:") for place in found_in_files("make test"))


def test_no_work_is_left_as_a_note() -> None:
    assert found_in_files(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3]) + r")\b") == []


OF_ONE_MACHINE = rf"(?<![\w.{{}}$-])/({'|'.join(['home', 'Users', 'root', 'work'])})/\w"


def test_no_file_names_a_directory_of_one_persons_machine() -> None:
    assert re.search(OF_ONE_MACHINE, "/" + "home/me")
    assert re.search(OF_ONE_MACHINE, "file:///" + "work/main")
    assert not re.search(OF_ONE_MACHINE, "$x/work/lib usr/home/x")
    assert found_in_files(OF_ONE_MACHINE) == []
