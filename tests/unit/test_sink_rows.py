"""Pure parts of the sink: rows, fit, addresses, messages."""

from __future__ import annotations

import doctest
import math

import msgspec
import pytest
import sink_support as support

from schemas import codec, results
from schemas.identity import rank_ranges, ranks_of
from schemas.topics import TOPICS
from sinks import address, errors, fit, query, sink
from sinks.errors import one_line
from sinks.fit import misfit
from sinks.rows import blocks_of, common


@pytest.mark.parametrize("module", [address, errors, fit, query, common])
def test_examples_in_docstrings_hold(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert result.failed == 0


def test_every_kind_of_every_topic_of_the_sink_has_rows_or_is_progress() -> None:
    kinds = {codec.kind_of(record) for record in support.everything()}
    assert kinds == {kind for topic in sink.SINK_TOPICS for kind in TOPICS[topic].kinds}
    for record in support.everything():
        kind = codec.kind_of(record)
        blocks = blocks_of(kind, record, "r", 0)
        assert bool(blocks) == (kind != "progress")
        for block in blocks:
            assert {len(values) for values in block.columns.values()} == {block.rows}
            assert block.columns["run_id"] == ["r"] * block.rows


def test_rows_are_a_pure_function_of_the_record() -> None:
    for record in support.everything():
        kind = codec.kind_of(record)
        again = codec.decode(kind, codec.encode(record))
        assert blocks_of(kind, record, "", 5) == blocks_of(kind, again, "", 5)


def test_an_empty_batch_has_no_rows() -> None:
    empty = msgspec.structs.replace(support.batch(), events=[])
    assert blocks_of("log", empty, "", 0) == []


def test_the_device_and_process_of_an_event_win_over_its_workers() -> None:
    found = {}
    for record in support.stamped():
        for block in blocks_of(codec.kind_of(record), record, "", 0):
            found[block.table] = block.columns
    assert found["metrics"]["device"] == ["GPU-7"] * 2
    assert found["alerts"]["device"] == found["logs"]["device"] == ["GPU-1"] * 2
    assert found["stacks"]["process_type"] == ["dataloader"] * 2
    assert found["logs"]["process_type"] == ["trainer"] * 2


@pytest.mark.parametrize(
    ("values", "type_name", "fits"),
    [
        ([2**31 - 1, -(2**31)], "Int32", True),
        ([2**31], "Int32", False),
        ([None, 1], "Nullable(Int32)", True),
        ([None], "Int64", False),
        ([-1], "UInt32", False),
        ([2**63], "DateTime64(9, 'UTC')", False),
        ([[1], [], [2**40]], "Array(Int32)", False),
        ([[[1], [2**63]]], "Array(Array(Int64))", False),
        ([[None, 5]], "Array(Nullable(Int64))", True),
        ([{"a": 1}, {}], "Map(LowCardinality(String), Int64)", True),
        ([{"a": 2**63}], "Map(LowCardinality(String), Int64)", False),
        ([None, 2**31], "SimpleAggregateFunction(max, Nullable(Int32))", False),
        ([2**63], "SimpleAggregateFunction(min, DateTime64(9, 'UTC'))", False),
        (["x"], "LowCardinality(String)", True),
        ([math.inf], "Float64", True),
        ([[["x"]]], "Array(Array(String))", True),
    ],
)
def test_what_fits_and_what_does_not(values: list[object], type_name: str, fits: bool) -> None:
    assert (misfit(values, type_name) is None) == fits


@pytest.mark.parametrize(
    "ranges", ["0-99999999999", "5-", "-5", "x", "3-1", "0-131072", "1,", ",".join(["0-99999"] * 9)]
)
def test_ranges_that_are_no_ranks_of_a_job_are_stored_as_they_are(ranges: str) -> None:
    kind = support.stack_class(groups=[results.MergedGroup(ranks=ranges, activity="own", place="f")])
    (block,) = blocks_of("merged_stacks", support.merged_stacks(classes=[kind]), "", 0)
    assert (block.columns["ranks"], block.columns["rank_list"]) == ([ranges], [[]])
    assert block.columns["missing"] == ["0-2,4-6"]


def test_ranges_become_the_ranks_that_they_are_of() -> None:
    for ranks in ([], [5], [0, 1, 2, 7], list(range(0, 1 << 17))):
        assert ranks_of(rank_ranges(ranks), 1 << 17) == ranks


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("http://host/db?password=a@b&verify=0", "http://host/db?password=***&verify=0"),
        ("http://me:a?b@host/db", "http://me:***@host/db"),
        ("http://me:a@host/db#token=b", "http://me:***@host/db#token=***"),
        ("http://me@host/db?connect_timeout=3", "http://me@host/db?connect_timeout=3"),
        ("chdb:///a/b", "chdb:///a/b"),
        ("me:secret@host:8123/db", "me:***@host:8123/db"),
        ("https:/me:secret@host", "https:***@host"),
        ("http://me:hunter2?x=1@host", "http://me:***"),
        ("http://me:a://b&c=d@host", "http://me:***"),
    ],
)
def test_addresses_are_shown_without_secrets(dsn: str, shown: str) -> None:
    assert address.safe_dsn(dsn) == shown


@pytest.mark.parametrize("verb", ["SELECT", "with", "From", "show", "DESCRIBE", "desc", "explain", "exists", "CHECK"])
def test_statements_that_read_are_known_by_their_first_word(verb: str) -> None:
    assert query.reading_verb(f"# a\n-- b\n/* c */ ({verb} x") == verb.lower()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "HTTPDriver for http://x returned code 62\n Code: 62. DB::Exception: Syntax\n error. (S_E)",
            "Syntax error. (S_E)",
        ),
        (
            "Code: 47. DB::Exception: No `x`. (U_I) (version 26.9.2.1 (official build)), Stack trace:\n0. a\n1. b",
            "No `x`. (U_I)",
        ),
        ("Code: 62. DB::Exception: Bad: 1. Expected one of: token, Dot, OR. (SYNTAX_ERROR)", "Bad: 1 (SYNTAX_ERROR)"),
        ("", "ValueError"),
        ("plain\nwords", "plain words"),
    ],
)
def test_messages_are_one_line(text: str, line: str) -> None:
    assert one_line(ValueError(text)) == line
