"""The SQL by name, from `queries.sql`: a `-- name:` line opens each statement."""

import re
from importlib import resources


def _load() -> dict[str, str]:
    text = resources.files("state").joinpath("queries.sql").read_text()
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


QUERIES = _load()
SCHEMA = resources.files("state").joinpath("schema.sql").read_text()
