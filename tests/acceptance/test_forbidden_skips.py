"""CONVOY_FORBID_SKIPS=1: a session in which something was skipped has failed, and says what."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
FILES = {
    "test_marked.py": "import pytest\n\ndef test_fine(): pass\n\n@pytest.mark.skip\ndef test_it(): pass\n",
    "test_by_fixture.py": (
        "import pytest\n\n@pytest.fixture\ndef thing(): pytest.skip('not here')\n\ndef test_it(thing): pass\n"
    ),
    "test_whole_file.py": "import pytest\npytest.skip('not here', allow_module_level=True)\n",
}
EXPECTED_FAILURE = {"test_expected.py": "import pytest\n\n@pytest.mark.xfail\ndef test_it(): assert False\n"}


def run_pytest(folder: Path, files: dict[str, str], *, forbid: bool) -> "subprocess.CompletedProcess[str]":
    """A session of its own over some files, with the hooks of tests/conftest.py."""
    for name, source in files.items():
        (folder / name).write_text(source)
    (folder / "pytest.ini").write_text("[pytest]\n")
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "CONVOY_FORBID_SKIPS": str(int(forbid))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", *files],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_each_kind_of_skip_is_listed_and_fails_the_session(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, FILES, forbid=True)

    assert done.returncode != 0, done.stdout
    listed = done.stdout.split("skipped, and CONVOY_FORBID_SKIPS=1", 1)[1]
    assert all(name in listed for name in FILES)


def test_a_skip_is_fine_where_it_is_not_forbidden(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, FILES, forbid=False)

    assert done.returncode == 0, done.stdout


def test_an_expected_failure_is_no_skip(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, EXPECTED_FAILURE, forbid=True)

    assert done.returncode == 0, done.stdout
