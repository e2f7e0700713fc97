"""Keys and lanes: which keys meet in a partition, which key is split, and which keys only look alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streams import state_event

from lanes.key import KeyChoice, key_text, look_alikes
from lanes.lane_map import lane_map


def test_key_lanes_that_meet_are_one_partition_lane() -> None:
    lanes = lane_map({"L1": {0}, "L2": {0}, "L3": {0}})
    assert (lanes.key_lanes, lanes.partition_lanes) == (3, 1)
    assert lanes.collisions == {0: ["L1", "L2", "L3"]}
    assert lanes.split == {}


def test_key_lanes_apart_do_not_collide() -> None:
    lanes = lane_map({"L3": {4}, "L2": {0}, "L1": {7}})
    assert (lanes.key_lanes, lanes.partition_lanes) == (3, 3)
    assert lanes.collisions == {}
    assert list(lanes.partitions_of) == ["L1", "L2", "L3"]


def test_a_key_in_two_partitions_is_split_and_can_collide_in_both() -> None:
    lanes = lane_map({"B": {5, 2}, "A": {2}, "C": {5}, "D": {1}})
    assert lanes.split == {"B": [2, 5]}
    assert lanes.collisions == {2: ["A", "B"], 5: ["B", "C"]}
    assert list(lanes.collisions) == [2, 5]
    assert (lanes.key_lanes, lanes.partition_lanes) == (4, 3)


def test_no_key_is_no_lane() -> None:
    lanes = lane_map({})
    assert (lanes.key_lanes, lanes.partition_lanes, lanes.collisions, lanes.split) == (0, 0, {}, {})


@given(st.dictionaries(st.text(max_size=3), st.sets(st.integers(0, 5), min_size=1), max_size=8))
def test_every_key_beyond_the_first_of_its_partition_is_in_a_collision(keys: dict[str, set[int]]) -> None:
    lanes = lane_map(keys)
    pairs = sum(len(partitions) for partitions in keys.values())
    assert pairs - lanes.partition_lanes == sum(len(found) - 1 for found in lanes.collisions.values())


@pytest.mark.parametrize(
    ("choice", "expected"),
    [(KeyChoice.TRACKING_NO, "TR-9"), (KeyChoice.LINE, "L2"), (KeyChoice.NONE, None)],
)
def test_a_choice_of_key_takes_its_field(choice: KeyChoice, expected: str | None) -> None:
    assert choice.value_of(state_event(shipment="TR-9", line="L2")) == expected


@pytest.mark.parametrize(
    "other",
    [
        "TR-4821 ",
        "\tTR-4821",
        "\u00a0TR-4821",
        "tr-4821",
        "\ufeffTR-4821",
        "TR-\u200b4821",
    ],
    ids=["space", "tab", "no-break space", "case", "byte order mark", "zero-width space"],
)
def test_a_key_that_looks_the_same_is_named(other: str) -> None:
    assert look_alikes(["TR-4821", other, "TR-9007"]) == [sorted(["TR-4821", other])]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Z\u00fcrich", "Zu\u0308rich"),
        ("Z\u00fcrich", "ZU\u0308RICH"),
        ("stra\u00dfe", "STRASSE"),
        ("\u0390", "\u0399\u0308\u0301"),
    ],
)
def test_another_unicode_form_of_a_key_is_named(first: str, second: str) -> None:
    assert look_alikes([first, second]) == [sorted([first, second])]


def test_keys_that_differ_to_the_eye_are_not_look_alikes() -> None:
    assert look_alikes(["007", "7", "42", "42.0", "TR-4821", "TR-4822", "TR 4821", "", "null"]) == []


def test_the_same_key_twice_is_no_pair() -> None:
    assert look_alikes(["TR-4821", "TR-4821"]) == []


def test_three_look_alikes_are_one_group() -> None:
    assert look_alikes(["b", "tr-4821", "TR-4821 ", "TR-4821"]) == [["TR-4821", "TR-4821 ", "tr-4821"]]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (b"TR-4821", "TR-4821"),
        (b"TR-4821 ", "'TR-4821 '"),
        (b"", "''"),
        (b"a\nb", r"'a\nb'"),
        (b"a\x1b[31m", r"'a\x1b[31m'"),
        ("Zürich".encode(), "Zürich"),
        (b"Z\xfcrich", "hex:5afc72696368"),
    ],
)
def test_a_key_is_shown_so_that_nothing_in_it_is_hidden(key: bytes, text: str) -> None:
    assert key_text(key) == text
