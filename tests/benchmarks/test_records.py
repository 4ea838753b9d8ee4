"""Results are lines of JSON: read back as written, a torn last line is forgotten, a broken one in the middle is an error."""

from __future__ import annotations

from dataclasses import replace

import pytest

from uql.base.errors import DataError
from uql.benchmarks.runner.records import Measured, Record, finite, hash_of, read, write
from uql.llm.run_record import Cost

RECORD = Record(
    "s", "t", "uql", "q1", "labels", 3, {"budget": 128}, {"uql": "1"}, "ab", 0.5, "F1", 7, numbers={"share": 0.25}
)


def test_a_record_is_read_back_as_it_was_written(tmp_path):
    path = tmp_path / "new" / "r.jsonl"
    write(path, RECORD)
    write(path, replace(RECORD, seed=4, usd=None, problem="ümlaut"))
    assert read(path) == [RECORD, replace(RECORD, seed=4, usd=None, problem="ümlaut")]


def test_a_line_that_a_killed_run_left_half_written_is_forgotten_and_does_not_swallow_the_next(tmp_path):
    path = tmp_path / "r.jsonl"
    write(path, RECORD)
    with path.open("ab") as file:
        file.write(b'{"suite": "s", "ta')
    assert read(path) == [RECORD]
    write(path, replace(RECORD, seed=4))
    assert [r.seed for r in read(path)] == [RECORD.seed, 4]
    with path.open("rb+") as file:  # a whole line without its end stays
        file.truncate(path.stat().st_size - 1)
    write(path, replace(RECORD, seed=5))
    assert [r.seed for r in read(path)] == [RECORD.seed, 4, 5]


def test_a_line_that_is_no_result_is_an_error_with_its_number(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text('{"suite": "s", "ta\n')
    write(path, RECORD)
    with pytest.raises(DataError, match="line 1") as error:
        read(path)
    assert error.value.code == "UQL501"


def test_a_later_line_of_the_same_run_replaces_the_earlier_one(tmp_path):
    path = tmp_path / "r.jsonl"
    write(path, RECORD)
    write(path, replace(RECORD, quality=0.75))
    assert [r.quality for r in read(path)] == [0.75]


def test_other_settings_are_another_run():
    assert replace(RECORD, settings={"budget": 64}).place != RECORD.place


def test_equal_answers_have_equal_hashes_whatever_holds_them():
    assert hash_of([(1, "a"), (2, None)]) == hash_of([[1, "a"], [2, None]])
    assert hash_of([1, 2]) != hash_of([2, 1])


def test_what_json_cannot_hold_is_left_out():
    assert finite({"a": 1.0, "b": float("nan"), "c": float("inf")}) == {"a": 1.0}


def test_a_line_cut_off_within_a_letter_is_forgotten_too(tmp_path):
    path = tmp_path / "r.jsonl"
    write(path, RECORD)
    with path.open("ab") as file:
        file.write('{"suite": "s", "text": "é'.encode()[:-1])
    assert read(path) == [RECORD]
    write(path, replace(RECORD, seed=4))
    assert [r.seed for r in read(path)] == [RECORD.seed, 4]


def test_a_file_that_is_no_text_is_an_error_in_words(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"\x92\xff\n\x00\x81\n")
    with pytest.raises(DataError, match="line 1 is not a benchmark result"):
        read(path)


def test_why_a_task_cannot_be_run_replaces_no_run_and_a_run_replaces_it(tmp_path):
    path = tmp_path / "r.jsonl"
    why = replace(RECORD, reason="not installed", quality=None)
    for line in (why, RECORD, why):
        write(path, line)
    assert read(path) == [RECORD]


def test_trials_of_samples_are_kept_by_the_same_rules(tmp_path):
    from uql.benchmarks.runner import lines
    from uql.benchmarks.sampling.long import Unit, read as trials

    path = tmp_path / "trials.jsonl"
    line = {"unit": {"first": 0, "table": "count", "name": "a"}, "trials": [{"width": float("inf")}]}
    lines.append(path, line, allow_nan=True)
    with path.open("a") as file:
        file.write('{"unit": {"first": 10, "table": "count", "name": "a"}')  # ends as a whole line may
    assert list(trials(path)) == [Unit(0, "count", "a")]
    lines.append(path, {**line, "unit": {**line["unit"], "first": 10}}, allow_nan=True)
    assert list(trials(path)) == [Unit(0, "count", "a"), Unit(10, "count", "a")]


def test_a_run_has_the_calls_tokens_and_usd_of_its_cost_and_seconds_of_its_own():
    cost = Cost(3, 2, 1, failed=1, input_tokens=40, output_tokens=5, usd=None, seconds=9.0, cached_tokens=7)
    assert Measured.at_cost(cost, ["a"], 0.5, "F1", 2.0, {"rows": 4.0}) == Measured(
        ["a"], 0.5, "F1", 3, 2, 1, 40, 5, None, 2.0, {"rows": 4.0}
    )
