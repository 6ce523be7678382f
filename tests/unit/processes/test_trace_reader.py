"""Reading traces: whole lines, again and again, and not more than can be kept."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from harness.processes import trace_reader
from harness.processes.trace_reader import DamagedTraceError, TraceReader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def line(label: str, nth: int, *, stop: bool = False, **context: str) -> str:
    """Return a line as a point writes it."""
    written = {
        "label": label,
        "context": context,
        "hits": dict.fromkeys(["", *context], nth),
        "stop": stop,
    }
    return json.dumps(written, separators=(",", ":")) + "\n"


def test_what_is_new_is_read_in_whole_lines(tmp_path: Path) -> None:
    """A reader may come while a line is being written."""
    path = tmp_path / "trace"
    reader = TraceReader(str(path), 1)
    reader.read()
    assert reader.hits == []
    written = line("a.b.mid", 1) + line("a.b.mid", 2, stop=True)
    path.write_text(written[:-5], encoding="utf-8")
    reader.read()
    assert [hit.hits[""] for hit in reader.hits] == [1]
    path.write_text(written, encoding="utf-8")
    reader.read()
    reader.read()
    assert [(hit.hits[""], hit.stop) for hit in reader.hits] == [(1, False), (2, True)]


def test_a_label_that_is_hit_for_ever_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300,000 hits took a gigabyte; those that matter are kept, the others counted."""
    monkeypatch.setattr(trace_reader, "MOST_HITS", 10)
    monkeypatch.setattr(trace_reader, "MOST_OF_A_LABEL", 2)
    path = tmp_path / "trace"
    lines = [line("beat.send.after", n, said='"stop":true') for n in range(1, 31)]
    lines += [line("work.do.mid", n) for n in range(1, 6)]
    lines += [line("beat.send.after", 31, stop=True)]
    path.write_text("".join(lines), encoding="utf-8")
    reader = TraceReader(str(path), 1)
    reader.read()
    assert [(hit.label, hit.hits[""]) for hit in reader.hits] == [
        *(("beat.send.after", n) for n in range(1, 11)),
        ("work.do.mid", 1),
        ("work.do.mid", 2),
        ("beat.send.after", 31),
    ]
    assert reader.left_out == 36 - 13


@pytest.mark.parametrize("bad", ["not json {", '{"a": 1}', '{"label": ["x"], "hits": "q"}', "[]"])
def test_a_line_that_no_point_wrote_is_an_error(tmp_path: Path, bad: str) -> None:
    """A trace that somebody else has written to proves nothing."""
    path = tmp_path / "trace"
    path.write_text(line("a.b.mid", 1) + bad + "\n", encoding="utf-8")
    with pytest.raises(DamagedTraceError, match="a line that no point has written"):
        TraceReader(str(path), 1).read()


@pytest.mark.parametrize(
    "forged",
    [
        "not json {",
        "{}",
        "[]",
        '{"label":["x"],"context":{},"hits":{"":1},"stop":true}',
        '{"label":"a.b.mid","context":{"order":1},"hits":{"":1,"order":1},"stop":false}',
        '{"label":"a.b.mid","context":{"order":"o1"},"hits":{"":1},"stop":false}',
        '{"label":"a.b.mid","context":{},"hits":{"":"1"},"stop":false}',
        '{"label":"a.b.mid","context":{},"hits":{"":true},"stop":false}',
        "[" * 5_000,
    ],
)
def test_a_line_that_no_point_has_written_is_said(forged: str, tmp_path: Path) -> None:
    """A worker can write into its trace, and then it proves nothing."""
    path = tmp_path / "trace"
    path.write_text(line("a.b.mid", 1) + forged + "\n", encoding="utf-8")
    with pytest.raises(DamagedTraceError, match="incarnation 3 has a line that no point"):
        TraceReader(str(path), 3).read()


def _remove(path: Path) -> None:
    path.unlink()


def _put_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _put_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (_remove, "was removed"),
        (_put_a_pipe, "cannot be read: not a file any more"),
        (_put_a_directory, "cannot be read: not a file any more"),
    ],
)
def test_a_trace_that_is_gone_is_said(
    harm: Callable[[Path], None], said: str, tmp_path: Path
) -> None:
    """A pipe in its place was waited for without an end."""
    path = tmp_path / "trace"
    path.write_text(line("a.b.mid", 1), encoding="utf-8")
    reader = TraceReader(str(path), 1)
    reader.read()
    harm(path)
    with pytest.raises(DamagedTraceError, match=said):
        reader.read()
