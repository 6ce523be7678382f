"""The published schema of the records, and how records are read."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

import jsonschema
import pytest

from benchmarks.sample_records import failure_record, run_record
from harness.cli.failures import schema_text
from harness.model.errors import UsageError
from harness.record.failure_schema import read_failure_record
from harness.record.run_schema import read_run
from harness.record.write_run import write_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.model.canonical_json import Json

ROOT = Path(__file__).parents[3]

PUBLISHED = ROOT / "reports" / "schema.json"


def test_published_schema_is_the_one_of_the_code() -> None:
    """`reports/schema.json` is what `crash-harness schema` prints."""
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


def _no_word_behind_a_choice(value: dict[str, object]) -> None:
    files = [
        {"path": "a", "size_bytes": 1, "checksum": "", "change": change}
        for change in ("same", "other")
    ]
    state = {**failure_record()["states"][0], "files": files}
    value["control"] = {**failure_record()["control"], "state": state}


def _missing(value: dict[str, object]) -> None:
    del value["minimal"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_old, "this version reads 'crash-harness/failure/4'"),
        (_no_list, r"failure.json: Expected `array`, got `object` - at `\$.violations`"),
        (_no_number, r"failure.json: Expected `int`, got `bool` - at `\$.seed`"),
        (
            _no_word,
            r"enum value 'nowhere' - at `\$.history\[0\].lane`; expected 'worker' or 'world'",
        ),
        (
            _no_word_behind_a_choice,
            r"at `\$.control.state.files\[1\].change`; expected 'same' or 'added' or 'changed'",
        ),
        (_missing, r"failure.json: Object missing required field `minimal`"),
    ],
)
def test_other_records_are_refused(
    tmp_path: Path, spoil: Callable[[dict[str, object]], None], message: str
) -> None:
    """A record of another version, or another shape, is refused with a clear message."""
    value: dict[str, object] = dict(copy.deepcopy(failure_record()))
    spoil(value)
    with pytest.raises(UsageError, match=message):
        read_failure_record(_write(tmp_path, "failure.json", value))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "line 1 column 1"),
        (b"{", "line 1 column 2"),
        (b'{"schema": NaN}', "NaN is not a number in JSON"),
        (b'{"seed": -Infinity}', "-Infinity is not a number in JSON"),
        (b'{"seconds": 1e999}', "1e999 is not a number in JSON"),
        (b'{"seed": ' + b"9" * 5000 + b"}", "4300 digits"),
        (b'{"tier": "\xff"}', "can't decode byte 0xff"),
        (b'\xef\xbb\xbf{"schema": 1}', "BOM"),
        (b'{"seed": 1} {}', "Extra data"),
    ],
)
def test_what_is_not_json_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    """A file that was cut short or was never JSON is refused with the reason and the place."""
    (tmp_path / "results.json").write_bytes(content)
    with pytest.raises(UsageError, match="is not JSON: ") as refused:
        read_run(tmp_path)
    assert str(tmp_path / "results.json") in str(refused.value)
    assert reason in str(refused.value)


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_what_is_nested_too_deeply_is_refused(tmp_path: Path, opening: bytes) -> None:
    """A file that would exhaust the stack is a usage error and not a traceback."""
    (tmp_path / "results.json").write_bytes(opening * 200_000)
    with pytest.raises(UsageError, match="nested too deeply"):
        read_run(tmp_path)


def test_a_directory_in_the_place_of_a_record_is_refused(tmp_path: Path) -> None:
    """What cannot be read is refused with what the system says of it."""
    (tmp_path / "results.json").mkdir()
    with pytest.raises(
        UsageError, match=r"no record of a run at .*results.json: it is a directory"
    ):
        read_run(tmp_path)


def test_keys_that_are_not_declared_are_let_pass(tmp_path: Path) -> None:
    """A record that someone added notes to is still one; nothing here looks at them."""
    noted = {**run_record(), "noted": {"by": "hand"}}
    assert read_run(_write(tmp_path, "results.json", noted)) == run_record()


def test_of_a_key_that_is_there_twice_the_last_counts(tmp_path: Path) -> None:
    """A record with a key twice is read as every other reader of JSON reads it."""
    text = json.dumps(run_record()).replace('"tier": ', '"tier": 3, "tier": ', 1)
    (tmp_path / "results.json").write_text(text, encoding="utf-8")
    assert read_run(tmp_path) == run_record()


def test_names_of_files_that_are_not_utf8_are_read_back(tmp_path: Path) -> None:
    """A worker may write a file whose name is not UTF-8; its record has a lone surrogate."""
    record = {**failure_record(), "survivors": ["caf\udce9"]}
    write_json(tmp_path / "failure.json", cast("Json", record))
    assert read_failure_record(tmp_path)["survivors"] == ["caf\udce9"]


def test_large_numbers_are_read_back_exactly(tmp_path: Path) -> None:
    """A seed has no largest number."""
    record = {**failure_record(), "seed": 10**400 + 1}
    write_json(tmp_path / "failure.json", cast("Json", record))
    assert read_failure_record(tmp_path)["seed"] == 10**400 + 1
