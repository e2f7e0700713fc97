"""What the native broker needs before it can start: a Java that is new enough, and jars, downloaded once."""

import threading
from pathlib import Path

import pytest

from broker.jars import JarsUnavailable, cached_jars, fetch_jars
from broker.native import why_not_native

JAVA_17 = "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2"
MAVEN = """\
echo run >> {runs}
for option; do case $option in -DoutputDirectory=*) target=${{option#*=}};; esac; done
mkdir -p "$target"; touch "$target/kafka-server-4.4.0.jar"
sleep 0.3
exit {code}
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an empty cache, whose only programs are the shell's and what a test puts into bin."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("mkdir", "touch", "sleep"):
        (programs / name).symlink_to(
            next(p for p in (Path("/bin", name), Path("/usr/bin", name)) if p.exists())
        )
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path


def _install(machine: Path, name: str, script: str) -> None:
    program = machine / "bin" / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_without_java_the_needed_version_is_said(machine: Path) -> None:
    assert machine.exists()
    assert why_not_native() == "Java is not installed (Kafka needs 17 or newer)"


@pytest.mark.parametrize(
    ("version", "major"), [("11.0.2", 11), ("1.8.0_392", 8), ("9", 9)], ids=["11", "8", "9"]
)
def test_an_old_java_is_named(machine: Path, version: str, major: int) -> None:
    _install(machine, "java", f"echo 'openjdk version \"{version}\"' >&2")
    assert why_not_native() == f"Java {major} is too old (Kafka needs 17 or newer)"


def test_a_java_that_only_tells_where_to_get_one_is_none(machine: Path) -> None:
    _install(machine, "java", "echo 'Unable to locate a Java Runtime.' >&2; exit 1")
    assert "not installed" in str(why_not_native())


def test_java_home_goes_before_the_path(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(machine, "java", "echo 'openjdk version \"11.0.2\"' >&2")
    (machine / "home").mkdir()
    (machine / "bin").rename(machine / "home" / "bin")
    monkeypatch.setenv("JAVA_HOME", str(machine / "home"))
    assert "Java 11" in str(why_not_native())


def test_without_maven_and_jars_maven_is_missing(machine: Path) -> None:
    _install(machine, "java", JAVA_17)
    assert "Maven (mvn) is not installed" in str(why_not_native())
    with pytest.raises(JarsUnavailable, match="Maven"):
        fetch_jars()


def test_two_who_want_the_jars_at_once_download_them_once(machine: Path) -> None:
    runs = machine / "runs"
    _install(machine, "mvn", MAVEN.format(runs=runs, code=0))
    both = [threading.Thread(target=fetch_jars) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(10)
    assert runs.read_text() == "run\n"
    assert [jar.name for jar in fetch_jars().iterdir()] == ["kafka-server-4.4.0.jar"]


def test_cached_jars_need_no_maven(machine: Path) -> None:
    _install(machine, "java", JAVA_17)
    _install(machine, "mvn", MAVEN.format(runs=machine / "runs", code=0))
    fetch_jars()
    (machine / "bin" / "mvn").unlink()
    assert why_not_native() is None


def test_a_download_that_breaks_off_leaves_nothing_behind(machine: Path) -> None:
    _install(machine, "mvn", MAVEN.format(runs=machine / "runs", code=1) + "\n")
    with pytest.raises(JarsUnavailable, match="could not download"):
        fetch_jars()
    assert cached_jars() is None
    assert not list((machine / "cache").rglob("*.jar"))
