"""The journal of a run: what goes in comes out, and what was altered is refused."""

from __future__ import annotations

import json
import os
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import pytest
from harness_doubles import broken, hit, result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.images.run_folder import RunFolder
from harness.model.errors import UsageError
from harness.model.result import ExperimentResult, Fired, IncarnationTrace, Verdict
from harness.model.schedule import parse
from harness.model.trace import Hit
from harness.record.journal import Journal
from harness.record.journal_content import (
    NotBegunError,
    is_being_written,
    read_journal,
    runs_with_a_journal,
)
from harness.record.journal_format import (
    SCHEMA,
    Asked,
    Finished,
    HeaderLine,
    finished_line,
    read_finished,
)

if TYPE_CHECKING:
    from pathlib import Path

HEADER: HeaderLine = {
    "journal": SCHEMA,
    "started": "2031-02-03T04:05:06+00:00",
    "tier": "smoke",
    "seed": 7,
    "scenarios": ["tried"],
    "command": None,
}
AT_B = parse("a.b.before[command=c2]#3=kill")
FULL = ExperimentResult(
    scenario="tried",
    schedule=AT_B,
    seed=7,
    verdict=Verdict.BROKEN,
    violations=broken(AT_B, "one", "other").violations,
    fired=(Fired(AT_B.incarnations[0][0].moment, 1),),
    note="a lone surrogate \udc80, a line\nend and \u2028",
    incarnations=(
        IncarnationTrace(
            1,
            (
                Hit("a.b.before", {"command": "c2"}, {"": 3, "command": 1}, stop=True),
                Hit("a.c.after", {}, {"": 1}, stop=False, child=True, thread=True, pid=77),
            ),
            "killed by SIGKILL",
            "d1ge57",
        ),
    ),
    survivors=("sleep 3",),
    outside=("/dev/shm/psm_*",),
    seconds=1.25,
)


def asked_for(found: ExperimentResult, *, kept: bool = True) -> Asked:
    """Return what asks for an experiment."""
    return Asked(
        found.scenario,
        str(found.schedule),
        found.seed,
        digests=True,
        sharing=7,
        fresh=False,
        confirm=True,
        kept=kept,
    )


def finished(found: ExperimentResult, at_s: float = 0.5) -> Finished:
    """Return an experiment that has finished."""
    return Finished(asked_for(found), found, at_s)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Give the folder of a run that was killed when it had four lines."""
    folder = tmp_path / "20310203T040506Z"
    folder.mkdir()
    journal = Journal.begin(folder, HEADER)
    journal.plan(2, kept=True)
    journal.finish(finished(FULL))
    journal.finish(finished(result(scenario="tried", incarnations=[[hit("a.b.before")]]), 0.75))
    journal.close(over=False)
    return folder


def file_of(run: Path) -> Path:
    """Return the file of a journal."""
    return RunFolder(run).journal


def test_a_result_comes_back_whole() -> None:
    """What a journal drops, the record of a run that is gone on with would not have."""
    whole = FULL, FULL.incarnations[0], FULL.incarnations[0].hits[1]
    for value in whole:
        for each in fields(value):
            assert getattr(value, each.name) or each.name in {"context", "stop"}, each.name
    line = json.loads(json.dumps(finished_line(finished(FULL))))
    back = read_finished(line, "here")
    assert back == finished(FULL)
    assert back.result.seconds == FULL.seconds
    assert back.result.incarnations[0].hits[1].pid == 77


def test_what_was_written_is_read(run: Path) -> None:
    """In the order in which it happened, with what was asked for."""
    content = read_journal(run)
    assert content.header == HEADER
    assert [each["planned"] for each in content.planned] == [2]
    assert [each.result.verdict for each in content.finished] == [Verdict.BROKEN, Verdict.HELD]


def test_a_line_that_is_torn_is_dropped_wherever_it_is_torn(run: Path) -> None:
    """A kill can come in the middle of a line; all that finished before is kept."""
    data = file_of(run).read_bytes()
    lines = data.split(b"\n")[:-1]
    for size in range(len(lines[0]) + 1, len(data)):
        file_of(run).write_bytes(data[:size])
        assert len(read_journal(run).finished) == max(0, data[:size].count(b"\n") - 2)
        journal = Journal.go_on(run)
        journal.finish(finished(replace(FULL, seed=99)))
        journal.close(over=False)
        assert read_journal(run).finished[-1].result.seed == 99
    for size in range(len(lines[0]) + 1):
        file_of(run).write_bytes(data[:size])
        with pytest.raises(NotBegunError):
            read_journal(run)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_whatever_was_done_to_it_is_refused_with_a_sentence(run: Path, data: st.DataObject) -> None:
    """Nobody gets a record of what did not happen, nor a traceback."""
    saved = run / "saved"
    if not saved.exists():
        saved.write_bytes(file_of(run).read_bytes())
    written = saved.read_bytes()
    lines = written.split(b"\n")[:-1]
    at = data.draw(st.integers(0, len(written) - 1))
    byte = data.draw(st.integers(0, 255))
    number, other = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    changed = data.draw(
        st.sampled_from(
            [
                written[:at] + bytes([byte]) + written[at + 1 :],
                written[:at] + bytes([byte]) * data.draw(st.integers(1, 5000)) + written[at:],
                written[:at] + written[at + data.draw(st.integers(1, 300)) :],
                _with_lines(lines[:number] + lines[number + 1 :]),
                _with_lines([*lines[:number], lines[other], *lines[number:]]),
                _with_lines([*lines[:number], b"[" * 100000, *lines[number:]]),
                b"\xff\xfe" + written,
            ]
        )
    )
    file_of(run).write_bytes(changed)
    try:
        content = read_journal(run)
    except UsageError as error:
        assert str(file_of(run)) in str(error)  # noqa: PT017 - or it is a beginning
    else:
        assert written.startswith(changed[: changed.rfind(b"\n") + 1]), "read what was not written"
        assert len(content.finished) <= changed.count(b"\n")


def _with_lines(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def test_one_of_another_version_is_named(run: Path) -> None:
    """Its lines may mean something else."""
    file = file_of(run)
    file.write_bytes(file.read_bytes().replace(b"journal/1", b"journal/7"))
    with pytest.raises(
        UsageError, match=r"has schema 'crash-harness/journal/7'.*begin the run ane"
    ):
        read_journal(run)


def test_what_is_not_a_file_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe in its place would be read until somebody writes to it."""
    os.mkfifo(file_of(tmp_path))
    with pytest.raises(UsageError, match="it is not a file"):
        read_journal(tmp_path)
    with pytest.raises(UsageError, match="it is not a file"):
        Journal.go_on(tmp_path)
    assert not is_being_written(tmp_path)


def test_it_is_locked_while_it_is_written(run: Path) -> None:
    """Two who go on with one run would mix their lines."""
    journal = Journal.go_on(run)
    assert is_being_written(run)
    with pytest.raises(UsageError, match="by a process that lives"):
        Journal.go_on(run)
    assert len(read_journal(run).finished) == 2, "to look is allowed"
    journal.close(over=False)
    assert not is_being_written(run)
    Journal.go_on(run).close(over=True)
    assert not file_of(run).exists()
    with pytest.raises(UsageError, match="no journal of a run"):
        Journal.go_on(run)


def test_a_run_that_ends_while_another_waits_for_it_is_over(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who opened its journal before it was deleted would go on in a file that nobody sees."""
    first = Journal.go_on(run)
    opened = os.open

    def slow(path: Path, flags: int) -> int:
        found = opened(path, flags)
        first.close(over=True)
        return found

    monkeypatch.setattr(os, "open", slow)
    with pytest.raises(UsageError, match="came to its end just now"):
        Journal.go_on(run)


def test_runs_that_are_not_over_are_found_the_latest_first(tmp_path: Path) -> None:
    """``--resume`` without a name means the one that was begun last."""
    names = ["20310203T040506Z", "20310203T040506Z-2", "20310203T040506Z-10", "20310203T040507Z"]
    for name in names:
        (tmp_path / name).mkdir()
        Journal.begin(tmp_path / name, HEADER).close(over=False)
    (tmp_path / "latest").symlink_to(names[0])
    (tmp_path / "20310203T040508Z").mkdir()
    assert [path.name for path in runs_with_a_journal(tmp_path)] == names[::-1]
    assert runs_with_a_journal(tmp_path / "none") == []
