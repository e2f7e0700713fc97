"""CONVOY_FORBID_SKIPS=1: a session in which something was skipped has failed, and says what."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SKIPPING = {
    "a test": "import pytest\n\ndef test_fine(): pass\n\n@pytest.mark.skip\ndef test_skipped(): pass\n",
    "a fixture": (
        "import pytest\n\n@pytest.fixture\ndef thing(): pytest.skip('not here')\n\n"
        "def test_skipped(thing): pass\n"
    ),
    "a file": "import pytest\npytest.skip('not here', allow_module_level=True)\ndef test_skipped(): pass\n",
}
EXPECTED_FAILURE = "import pytest\n\n@pytest.mark.xfail\ndef test_expected(): assert False\n"


def run_pytest(folder: Path, source: str, *, forbid: bool) -> "subprocess.CompletedProcess[str]":
    """A session of its own over one file, with the hooks of tests/conftest.py."""
    (folder / "test_it.py").write_text(source)
    (folder / "pytest.ini").write_text("[pytest]\n")
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "CONVOY_FORBID_SKIPS": str(int(forbid))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "test_it.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("what", SKIPPING)
def test_a_skip_fails_the_session_and_is_listed(tmp_path: Path, what: str) -> None:
    done = run_pytest(tmp_path, SKIPPING[what], forbid=True)

    assert done.returncode != 0, done.stdout
    assert "skipped, and CONVOY_FORBID_SKIPS=1" in done.stdout
    assert "test_it.py" in done.stdout.split("CONVOY_FORBID_SKIPS=1", 1)[1]


@pytest.mark.parametrize("what", ["a test", "a fixture"])
def test_a_skip_is_fine_where_it_is_not_forbidden(tmp_path: Path, what: str) -> None:
    done = run_pytest(tmp_path, SKIPPING[what], forbid=False)

    assert done.returncode == 0, done.stdout


def test_an_expected_failure_is_no_skip(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, EXPECTED_FAILURE, forbid=True)

    assert done.returncode == 0, done.stdout
