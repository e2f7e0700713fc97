"""From a key to its partition: recorded hashes, CRC32 by another library, and keys that go wrong."""

import json
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.partitioner import Partitioner

CASES = Path(__file__).parents[1] / "cases" / "murmur2.jsonl"
HASHES = [
    (bytes.fromhex(case["key_hex"]), case["murmur2"])
    for case in map(json.loads, CASES.read_text().splitlines())
]
LARGEST = 2**31 - 1
COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 32, 48, 1000, 65536, LARGEST)

MURMUR2, CRC32 = Partitioner.MURMUR2, Partitioner.CRC32

ZURICH_COMPOSED = "Z\u00fcrich".encode()
ZURICH_DECOMPOSED = "Zu\u0308rich".encode()
ZURICH_LATIN_1 = b"Z\xfcrich"


@pytest.mark.parametrize(("key", "recorded"), HASHES, ids=[f"{key[:12].hex()}..." for key, _ in HASHES])
def test_murmur2_is_the_recorded_hash_without_its_sign_bit_over_the_partitions(
    key: bytes, recorded: int
) -> None:
    for partitions in COUNTS:
        assert MURMUR2.partition_of(key, partitions) == (recorded & 0x7FFFFFFF) % partitions


def test_the_recorded_hashes_hold_some_with_and_some_without_the_sign_bit() -> None:
    assert len(HASHES) == 114
    assert {recorded >> 31 for _, recorded in HASHES} == {0, 1}


@given(st.binary(min_size=1), st.sampled_from(COUNTS))
def test_crc32_is_the_one_of_zlib_over_the_partitions(key: bytes, partitions: int) -> None:
    assert CRC32.partition_of(key, partitions) == zlib.crc32(key) % partitions


@pytest.mark.parametrize(
    ("key", "partitions", "java", "librdkafka"),
    [
        (b"TT0124", 15, 10, 9),
        (b"100:48069", 12, 9, 6),
        (b"wu", 10, 0, 1),
        (b"fd7af248-ce5c-46a5-93d7-1c0c9005b99d", 32, 26, 23),
    ],
)
def test_one_key_has_two_partitions_under_the_two_rules(
    key: bytes, partitions: int, java: int, librdkafka: int
) -> None:
    assert MURMUR2.partition_of(key, partitions) == java
    assert CRC32.partition_of(key, partitions) == librdkafka


def test_a_key_that_a_home_made_murmur2_misses_has_javas_hash() -> None:
    assert MURMUR2.partition_of(b"100:48069", LARGEST) == 1009543857


def test_the_hash_is_over_utf_8_bytes_and_not_over_characters() -> None:
    assert MURMUR2.partition_of("thingäöüÄÖÜ".encode(), 10) == 2


@pytest.mark.parametrize(
    ("key", "of_4", "of_3"),
    [(ZURICH_COMPOSED, 1, 1), (ZURICH_DECOMPOSED, 1, 0), (ZURICH_LATIN_1, 2, 0)],
    ids=["composed", "decomposed", "latin-1"],
)
def test_one_word_in_other_bytes_is_another_key(key: bytes, of_4: int, of_3: int) -> None:
    assert (MURMUR2.partition_of(key, 4), MURMUR2.partition_of(key, 3)) == (of_4, of_3)


def test_empty_keys_share_one_partition_under_murmur2_and_scatter_under_crc32() -> None:
    assert MURMUR2.partition_of(b"", 4) == 1
    assert CRC32.partition_of(b"", 4) is None


@pytest.mark.parametrize("rule", list(Partitioner))
def test_no_key_has_no_partition_to_predict(rule: Partitioner) -> None:
    assert rule.partition_of(None, 4) is None


def test_the_text_null_is_a_key_like_any_other() -> None:
    assert MURMUR2.partition_of(b"null", 4) == 3


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        (b"42", 1),
        ((42).to_bytes(4, "big"), 0),
        ((42).to_bytes(8, "big"), 1),
        (b"007", 1),
        (b"7", 0),
        (b"42.0", 2),
    ],
)
def test_a_number_has_the_partition_of_its_bytes_of_3(key: bytes, partition: int) -> None:
    assert MURMUR2.partition_of(key, 3) == partition


@pytest.mark.parametrize(
    ("key", "of_4", "of_3"), [(b"TR-4821", 3, 0), (b"TR-4821 ", 3, 2), (b"tr-4821", 0, 0)]
)
def test_a_space_or_another_case_makes_another_key(key: bytes, of_4: int, of_3: int) -> None:
    assert (MURMUR2.partition_of(key, 4), MURMUR2.partition_of(key, 3)) == (of_4, of_3)


def test_the_rules_carry_librdkafkas_names() -> None:
    assert [rule.value for rule in Partitioner] == ["murmur2_random", "consistent_random"]


@given(st.binary(), st.integers(1, LARGEST))
def test_a_partition_is_always_one_that_exists(key: bytes, partitions: int) -> None:
    murmur2, crc32 = MURMUR2.partition_of(key, partitions), CRC32.partition_of(key, partitions)
    assert murmur2 is not None
    assert 0 <= murmur2 < partitions
    assert (crc32 is None) == (key == b"")
    assert crc32 is None or 0 <= crc32 < partitions
