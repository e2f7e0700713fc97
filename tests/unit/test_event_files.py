"""Files of events: taken whole or not at all, and every bad line named."""

import json
from pathlib import Path

import pytest

from lanes.event import HistoryEvent, StateEvent
from lanes.key import KeyChoice
from producer.errors import BadFile
from producer.reading import read_events

HEADER = "tracking_no,line,state,duration,order"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def json_line(**changes: object) -> str:
    """A valid line of JSON with some of its fields changed."""
    fields: dict[str, object] = {
        "tracking_no": "TR-1",
        "line": "L1",
        "state": "accepted",
        "duration": 1,
        "order": 0,
    }
    return json.dumps(fields | changes)


def file_of(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def problems_of(folder: Path, name: str, content: str | bytes) -> list[str]:
    with pytest.raises(BadFile) as refused:
        read_events(file_of(folder, name, content))
    return refused.value.problems


def facts(events: list[StateEvent | HistoryEvent]) -> list[tuple[str, str, str, int, int]]:
    return [
        (e.tracking_no, e.line, e.state.value if isinstance(e, StateEvent) else e.scan, e.duration, e.order)
        for e in events
    ]


TWO_EVENTS = [("TR-1", "L1", "accepted", 2, 0), ("TR-2", "L2", "delivered", 1, 1)]
TWO_CSV_LINES = f"{HEADER}\nTR-1,L1,accepted,2,0\nTR-2,L2,delivered,1,1\n"
TWO_JSON_LINES = "\n".join(
    [
        json_line(duration=2),
        json_line(tracking_no="TR-2", line="L2", state="delivered", order=1),
    ]
)


@pytest.mark.parametrize("name", ["e.jsonl", "e.ndjson", "e.json", "E.JSONL"])
def test_jsonl_is_read_in_the_files_order(tmp_path: Path, name: str) -> None:
    assert facts(read_events(file_of(tmp_path, name, TWO_JSON_LINES))) == TWO_EVENTS


@pytest.mark.parametrize("name", ["e.csv", "E.CSV"])
def test_csv_is_read_in_the_files_order(tmp_path: Path, name: str) -> None:
    assert facts(read_events(file_of(tmp_path, name, TWO_CSV_LINES))) == TWO_EVENTS


def test_the_files_order_is_kept_though_arrival_orders_fall(tmp_path: Path) -> None:
    path = file_of(tmp_path, "e.csv", f"{HEADER}\nA,L1,accepted,1,9\nA,L1,delivered,1,3\nA,L1,accepted,1,5\n")
    assert [event.order for event in read_events(path)] == [9, 3, 5]


@pytest.mark.parametrize(("name", "content"), [("e.csv", TWO_CSV_LINES), ("e.jsonl", TWO_JSON_LINES)])
@pytest.mark.parametrize("mark", [b"", BYTE_ORDER_MARK], ids=["plain", "byte order mark"])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("last_line_ends", [True, False])
def test_a_byte_order_mark_and_line_ends_of_either_kind_change_nothing(
    tmp_path: Path, name: str, content: str, mark: bytes, line_end: bytes, last_line_ends: bool
) -> None:
    raw = mark + content.strip().encode().replace(b"\n", line_end) + (line_end if last_line_ends else b"")
    assert facts(read_events(file_of(tmp_path, name, raw))) == TWO_EVENTS


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.csv", f"\n\n{HEADER}\n\nTR-1,L1,accepted,2,0\n\n\nTR-2,L2,delivered,1,1\n\n"),
        ("e.jsonl", "\n  \n" + TWO_JSON_LINES.replace("\n", "\n\t\n\n") + "\n\n"),
    ],
)
def test_blank_lines_are_passed_over(tmp_path: Path, name: str, content: str) -> None:
    assert facts(read_events(file_of(tmp_path, name, content))) == TWO_EVENTS


def test_blank_lines_count_where_a_problem_is_named(tmp_path: Path) -> None:
    csv = f"\n{HEADER}\n\nTR-1,L1,accepted,zero,0\n"
    assert [p.split(":")[0] for p in problems_of(tmp_path, "e.csv", csv)] == ["line 4"]
    assert [p.split(":")[0] for p in problems_of(tmp_path, "e.jsonl", "\n\n{\n")] == ["line 3"]


def test_columns_may_come_in_any_order_and_unknown_ones_are_ignored(tmp_path: Path) -> None:
    content = " order ,colour,state,line,tracking_no, duration\n0,red,accepted,L1,TR-1,2\n"
    assert facts(read_events(file_of(tmp_path, "e.csv", content))) == TWO_EVENTS[:1]


def test_a_missing_column_is_named_beside_those_that_there_are(tmp_path: Path) -> None:
    content = "tracking_no,state,duration,Order\nTR-1,accepted,1,0\n"
    assert problems_of(tmp_path, "e.csv", content) == [
        "line 1: no column line, order; there are tracking_no, state, duration, Order"
    ]


def test_two_columns_of_one_name_are_refused_because_one_would_count_in_silence(tmp_path: Path) -> None:
    content = f"{HEADER},line\nTR-1,L1,accepted,1,0,L2\n"
    assert problems_of(tmp_path, "e.csv", content) == ["line 1: more than one column line"]


@pytest.mark.parametrize(
    ("row", "count"), [("TR-1,L1,accepted,1,0,extra", 6), ("TR-1,L1,accepted,1", 4), (" ", 1)]
)
def test_a_row_with_more_or_fewer_cells_than_columns_is_refused(tmp_path: Path, row: str, count: int) -> None:
    content = f"{HEADER}\n{row}\nTR-1,L1,accepted,1,7\n"
    assert problems_of(tmp_path, "e.csv", content) == [f"line 2: {count} cells under 5 columns"]


def test_a_quoted_cell_may_hold_commas_quotes_and_line_ends(tmp_path: Path) -> None:
    content = f'{HEADER}\n"TR,""1""\n2",L1,accepted,1,0\nTR-2,L1,bad,1,1\n'
    assert problems_of(tmp_path, "e.csv", content)[0].startswith("line 4: state: ")
    good = content.replace("bad", "accepted")
    assert [e.tracking_no for e in read_events(file_of(tmp_path, "e.csv", good))] == ['TR,"1"\n2', "TR-2"]


@pytest.mark.parametrize(
    ("rows", "line", "reason"),
    [
        ('TR-1,L1,accepted,1,0\n"TR-2,L1,accepted,1,1\nTR-3,L1,accepted,1,2\n', 4, "unexpected end of data"),
        ('"TR"-1,L1,accepted,1,0\n', 2, "',' expected after '\"'"),
        ("A" * 200_000 + ",L1,accepted,1,0\n", 2, "field larger than field limit (131072)"),
    ],
    ids=["open quote", "text behind a quote", "endless cell"],
)
def test_what_is_not_csv_is_refused_with_its_line(tmp_path: Path, rows: str, line: int, reason: str) -> None:
    assert problems_of(tmp_path, "e.csv", f"{HEADER}\n{rows}")[-1] == f"line {line}: not CSV: {reason}"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"tracking_no": ""}, "tracking_no: String should have at least 1 character (found '')"),
        ({"line": ""}, "line: String should have at least 1 character (found '')"),
        ({"state": "lost"}, "state: Input should be 'accepted', 'transferred', 'outForDelivery' or"),
        ({"duration": 0}, "duration: Input should be greater than 0 (found "),
        ({"duration": "x"}, "duration: Input should be a valid integer"),
        ({"order": -1}, "order: Input should be greater than or equal to 0 (found "),
        ({"order": 2**63}, "order: Input should be less than or equal to 9223372036854775807 (found "),
    ],
)
@pytest.mark.parametrize("name", ["e.csv", "e.jsonl"])
def test_a_bad_field_is_named_with_its_line_and_what_it_holds(
    tmp_path: Path, name: str, changes: dict[str, object], problem: str
) -> None:
    bad = json_line(**changes)
    if name == "e.csv":
        lines = [HEADER, "A,L1,accepted,1,7", ",".join(str(cell) for cell in json.loads(bad).values())]
    else:
        lines = ["", json_line(order=7), bad]
    (only,) = problems_of(tmp_path, name, "\n".join(lines))
    assert only.startswith(f"line 3: {problem}")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{not json", "line 1: Invalid JSON: key must be a string at line 1 column 2"),
        ("[]", "line 1: event: "),
        ("7", "line 1: event: "),
        ("null", "line 1: event: "),
        ('{"line": "L1"}', "line 1: tracking_no: missing; duration: missing; order: missing; state: missing"),
    ],
)
def test_a_line_that_is_no_event_is_refused(tmp_path: Path, line: str, problem: str) -> None:
    (only,) = problems_of(tmp_path, "e.jsonl", line)
    assert only.startswith(problem)


def test_an_arrival_order_used_twice_is_named_with_both_lines(tmp_path: Path) -> None:
    csv = f"{HEADER}\nA,L1,accepted,1,5\nB,L1,accepted,1,6\n\nC,L1,accepted,1,5\nD,L1,accepted,1,5\n"
    assert problems_of(tmp_path, "e.csv", csv) == [
        "line 5: order 5 is used on line 2 already",
        "line 6: order 5 is used on line 2 already",
    ]
    jsonl = "\n".join([json_line(order=1), json_line(order=2), json_line(order=1)])
    assert problems_of(tmp_path, "e.jsonl", jsonl) == ["line 3: order 1 is used on line 1 already"]


def test_every_problem_is_kept_and_the_message_shows_twenty(tmp_path: Path) -> None:
    path = file_of(tmp_path, "e.jsonl", "\n".join(["{"] * 23 + [json_line()]))
    with pytest.raises(BadFile) as refused:
        read_events(path)
    assert len(refused.value.problems) == 23
    lines = str(refused.value).splitlines()
    assert lines[0] == f"{path} cannot be used: 23 problems"
    assert len(lines) == 22
    assert lines[20].startswith("  line 20: ")
    assert lines[21] == "  and 3 more"
    assert refused.value.hint == ("A file is taken whole or not at all. Mend it and run the command again.")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.csv", ""),
        ("e.csv", "\n\n"),
        ("e.csv", HEADER),
        ("e.csv", BYTE_ORDER_MARK),
        ("e.jsonl", ""),
        ("e.jsonl", " \n\n"),
        ("e.jsonl", BYTE_ORDER_MARK),
    ],
)
def test_a_file_without_an_event_is_refused(tmp_path: Path, name: str, content: str | bytes) -> None:
    assert problems_of(tmp_path, name, content) == ["it holds no event"]


@pytest.mark.parametrize("name", ["events.txt", "events", "events.csv.gz", "events.tsv"])
def test_a_name_that_does_not_say_the_format_is_refused(tmp_path: Path, name: str) -> None:
    assert problems_of(tmp_path, name, TWO_CSV_LINES) == [
        "the name must end in .jsonl or .csv, so that its format is known"
    ]


def test_a_missing_file_and_a_folder_are_refused_with_the_systems_reason(tmp_path: Path) -> None:
    reasons = []
    for path in (tmp_path / "missing.csv", tmp_path):
        with pytest.raises(BadFile) as refused:
            read_events(path)
        reasons.append(str(refused.value).removeprefix(str(path)))
    assert reasons == [
        " cannot be used: 1 problem\n  No such file or directory",
        " cannot be used: 1 problem\n  Is a directory",
    ]


@pytest.mark.parametrize("mark", [b"", BYTE_ORDER_MARK])
@pytest.mark.parametrize("bad", [b"\xff,L1", b"TR-\xe4,L1", b"TR-1,\xc3"])
def test_csv_that_is_not_utf_8_is_refused_with_its_line(tmp_path: Path, mark: bytes, bad: bytes) -> None:
    content = mark + HEADER.encode() + b"\nTR-1,L1,accepted,1,0\n" + bad + b",accepted,1,1\n"
    (only,) = problems_of(tmp_path, "e.csv", content)
    assert only.startswith("line 3: not UTF-8: ")


def test_the_first_bytes_of_a_line_behind_a_byte_order_mark_count_to_that_line(tmp_path: Path) -> None:
    assert problems_of(tmp_path, "e.csv", BYTE_ORDER_MARK + b"a\n\xff\n") == [
        "line 2: not UTF-8: invalid start byte"
    ]


def test_jsonl_that_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    content = json_line().encode() + b"\n" + json_line(order=1, line="L@").encode().replace(b"@", b"\xe4")
    (only,) = problems_of(tmp_path, "e.jsonl", content)
    assert only.startswith("line 2: Invalid JSON: invalid unicode code point")


@pytest.mark.parametrize("number", ["007", "7", "42.0", "0042", "1e3", "TR-1 ", " TR-1", "tr-1"])
def test_a_csv_key_stays_the_text_that_it_was(tmp_path: Path, number: str) -> None:
    path = file_of(tmp_path, "e.csv", f"{HEADER}\n{number},{number},accepted,1,0\n")
    (event,) = read_events(path)
    assert (event.tracking_no, event.line) == (number, number)


@pytest.mark.parametrize("field", ["tracking_no", "line"])
def test_json_null_a_number_and_an_empty_key_are_refused_with_the_row(tmp_path: Path, field: str) -> None:
    lines = [json_line(order=order, **{field: key}) for order, key in enumerate([None, 42, "", "TR-1"])]
    problems = problems_of(tmp_path, "e.jsonl", "\n".join(lines))
    assert [problem.split(": ")[:2] for problem in problems] == [
        ["line 1", field],
        ["line 2", field],
        ["line 3", field],
    ]


@pytest.mark.parametrize("name", ["e.csv", "e.jsonl"])
def test_the_texts_null_are_keys_of_their_own_and_never_one_with_no_key(tmp_path: Path, name: str) -> None:
    texts = ["null", "NULL", "None", "nan"]
    csv = "\n".join([HEADER, *(f"{text},{text},accepted,1,{i}" for i, text in enumerate(texts))])
    jsonl = "\n".join(json_line(tracking_no=text, line=text, order=i) for i, text in enumerate(texts))
    events = read_events(file_of(tmp_path, name, csv if name == "e.csv" else jsonl))
    for choice in (KeyChoice.TRACKING_NO, KeyChoice.LINE):
        assert [choice.value_of(event) for event in events] == ["null", "NULL", "None", "nan"]


@pytest.mark.parametrize("name", ["e.csv", "e.jsonl"])
def test_an_event_with_a_scan_and_no_state_is_a_history_event(tmp_path: Path, name: str) -> None:
    csv = f"{HEADER},scan\nTR-1,L1,,1,0,gate 4\nTR-1,L1,accepted,1,1,\n"
    jsonl = "\n".join(
        [
            '{"tracking_no": "TR-1", "line": "L1", "duration": 1, "order": 0, "scan": "gate 4"}',
            json_line(order=1),
        ]
    )
    scan, state = read_events(file_of(tmp_path, name, csv if name == "e.csv" else jsonl))
    assert isinstance(scan, HistoryEvent)
    assert scan.scan == "gate 4"
    assert isinstance(state, StateEvent)
