"""The published schema of the records, and how records are read."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from benchmarks.sample_records import failure_record, run_record
from harness.cli.failures import schema_text
from harness.model.errors import UsageError
from harness.record.failure_schema import read_failure_record
from harness.record.run_schema import read_run

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]

PUBLISHED = ROOT / "reports" / "schema.json"


def test_published_schema_is_the_one_of_the_code() -> None:
    """Issue 6: `reports/schema.json` is what `crash-harness schema` prints."""
    assert PUBLISHED.read_text(encoding="utf-8") == schema_text()


@pytest.mark.parametrize("record", [run_record(), failure_record()])
def test_records_are_valid(record: object) -> None:
    """The samples that the renderers are tested with are records."""
    schema = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(record)


def _write(folder: Path, name: str, value: object) -> Path:
    (folder / name).write_text(json.dumps(value), encoding="utf-8")
    return folder


def test_records_are_read_back(tmp_path: Path) -> None:
    """What is written is read as it was."""
    assert read_run(_write(tmp_path, "results.json", run_record())) == run_record()
    assert read_failure_record(_write(tmp_path, "failure.json", failure_record())) == (
        failure_record()
    )


def _old(value: dict[str, object]) -> None:
    value["schema"] = "crash-harness/failure/2"


def _no_list(value: dict[str, object]) -> None:
    value["violations"] = {}


def _no_number(value: dict[str, object]) -> None:
    value["seed"] = True


def _no_word(value: dict[str, object]) -> None:
    value["history"] = [{**failure_record()["history"][0], "lane": "nowhere"}]


def _missing(value: dict[str, object]) -> None:
    del value["minimal"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_old, "this version reads 'crash-harness/failure/4'"),
        (_no_list, r"failure.json.violations is no list"),
        (_no_number, r"failure.json.seed is not a whole number"),
        (_no_word, r"lane is 'nowhere'"),
        (_missing, r"'minimal' is missing"),
    ],
)
def test_other_records_are_refused(
    tmp_path: Path, spoil: Callable[[dict[str, object]], None], message: str
) -> None:
    """Issue 6: a record of another version, or another shape, is refused with a clear message."""
    value: dict[str, object] = dict(copy.deepcopy(failure_record()))
    spoil(value)
    with pytest.raises(UsageError, match=message):
        read_failure_record(_write(tmp_path, "failure.json", value))


def test_what_is_no_json_is_refused(tmp_path: Path) -> None:
    """A file that was cut short is no record."""
    (tmp_path / "results.json").write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match="is not JSON"):
        read_run(tmp_path)
