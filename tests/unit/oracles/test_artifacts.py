"""Oracles of artifacts: files, trees, finished parts, inputs, and what lies outside."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from harness_doubles import Scene, hit

from harness.model.oracle import Finding, OracleStatus
from harness.oracles.mailbox.artifacts import (
    ArtifactsWhole,
    FinishedPartsReused,
    InputKept,
    NothingOutside,
    OneVersion,
    TreesWhole,
)
from harness.oracles.mailbox.worker_state import ArtifactRow, AttemptRow, OutboxRow, WorkerState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from harness.model.image import Image
    from harness.model.oracle import Evidence
    from harness.model.workload import Command

HOLDS = Finding(OracleStatus.HOLDS)
TEXT = b"what c1 asks for"
CHECKSUM = hashlib.sha256(TEXT).hexdigest()
ARTIFACT_BOOKS = WorkerState(artifacts=(ArtifactRow("c1/out.txt", "a1", CHECKSUM),))
RESULT = OutboxRow("e1", "a1", "c1", "succeeded", '{"input": "one"}', reported=True)
WHOLE = b"the part, whole"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Give an experiment without books or facts."""
    return Scene(tmp_path)


def broken(*found: str) -> Finding:
    """Return *broken* with these facts."""
    return Finding(OracleStatus.BROKEN, found)


def expected(command: Command) -> Mapping[str, str]:
    """Say which file a command asks for."""
    return {"c1/out.txt": CHECKSUM} if command.command_id == "c1" else {}


def put_file(name: str, data: bytes, *images: Image) -> None:
    """Write a file among the artifacts of images."""
    for image in images:
        file = image.worker_dir / "files" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def artifacts(scene: Scene) -> Finding:
    """Ask about the files."""
    return ArtifactsWhole(
        scene.read_books, "files", expected, lambda name: name.endswith(".tmp")
    ).check(scene.evidence())


@pytest.fixture
def files(scene: Scene) -> Scene:
    """Give an experiment whose file was made in the recovery, with the temporary one before."""
    put_file("c1/out.txt.tmp", b"half", scene.crash)
    put_file("c1/out.txt", TEXT, scene.settled, scene.after_restart, scene.final)
    scene.put_books(ARTIFACT_BOOKS, scene.settled, scene.final)
    return scene


@pytest.mark.requirement("INV-11", "FIL-03")
def test_files_that_are_whole_hold(files: Scene) -> None:
    """A file may be missing or temporary at the crash if it is whole in the end."""
    assert artifacts(files) == HOLDS


@pytest.mark.requirement("INV-11")
def test_a_file_that_is_torn_at_the_crash(files: Scene) -> None:
    """A file at its final path is whole at every moment."""
    put_file("c1/out.txt", TEXT[:5], files.crash)
    assert artifacts(files) == broken("after incarnation 1: file 'c1/out.txt' is torn or wrong")


@pytest.mark.requirement("INV-12")
def test_a_file_that_was_never_asked_for(files: Scene) -> None:
    """Nothing else appears at a final path."""
    put_file("c1/more.txt", TEXT, files.crash)
    assert artifacts(files) == broken("after incarnation 1: file 'c1/more.txt' was never asked for")


@pytest.mark.requirement("FIL-03")
def test_a_temporary_file_that_is_left(files: Scene) -> None:
    """At rest nothing half-made is left; it is told once, however many images show it."""
    put_file("c1/out.txt.tmp", b"half", files.settled, files.final)
    assert artifacts(files) == broken("at rest: temporary file 'c1/out.txt.tmp' is left")


@pytest.mark.requirement("INV-1")
def test_a_file_that_is_missing_in_the_end(files: Scene) -> None:
    """What a command asks for is there in the end."""
    (files.final.worker_dir / "files" / "c1" / "out.txt").unlink()
    assert artifacts(files) == broken("at the end: file 'c1/out.txt' is missing")


@pytest.mark.requirement("INV-1")
def test_a_file_that_comes_after_one_more_restart_is_late(files: Scene) -> None:
    """The second restart picks up what the recovery left lying; in real life there may be none."""
    (files.settled.worker_dir / "files" / "c1" / "out.txt").unlink()
    assert artifacts(files) == broken("at rest: file 'c1/out.txt' is missing")


@pytest.mark.requirement("INV-11")
@pytest.mark.parametrize("checksum", [None, "0" * 64])
def test_books_that_do_not_have_the_file(files: Scene, checksum: str | None) -> None:
    """The books record the checksum of what is there."""
    rows = (ArtifactRow("c1/out.txt", "a1", checksum),) if checksum else ()
    files.put_books(WorkerState(artifacts=rows), files.final)
    assert artifacts(files) == broken(f"at the end: the books have file 'c1/out.txt' as {checksum}")


def test_no_directory_of_artifacts_is_no_artifacts(scene: Scene) -> None:
    """A worker that was killed before it made its directory has no file that could be wrong."""
    assert artifacts(scene) == broken(
        "at rest: file 'c1/out.txt' is missing",
        "at rest: the books have file 'c1/out.txt' as None",
    )


def part_of(command: Command) -> dict[str, str]:
    """Ask every command for one part."""
    return {f"{command.command_id}/part": hashlib.sha256(WHOLE).hexdigest()}


def recovering(evidence: Evidence, labels: Sequence[str], part: str = "part") -> Evidence:
    """Let the recovery write a part of the first command."""
    hits = tuple(hit(label, command="c1", part=part) for label in labels)
    return replace(evidence, recovered=replace(evidence.recovered, hits=hits))


@pytest.mark.requirement("CLN-01", "REC-04")
@pytest.mark.parametrize(
    ("content", "state", "label", "again"),
    [
        (WHOLE, "RUNNING", "part.write.before", True),
        (WHOLE, "RUNNING", "part.write.after", False),
        (WHOLE, "SUCCEEDED", "part.write.before", False),
        (WHOLE[:-1], "RUNNING", "part.write.before", False),
        (None, "RUNNING", "part.write.before", False),
    ],
)
def test_a_whole_part_is_not_made_again(
    scene: Scene, content: bytes | None, state: str, label: str, again: bool
) -> None:
    """A part counts that was whole, of an open attempt, and is written again."""
    row = AttemptRow("a1", "c1", "work/1", state, has_result=state == "SUCCEEDED")
    scene.put_books(WorkerState(attempts=(row,)), scene.crash)
    file = scene.crash.worker_dir / "artifacts" / "c1" / "part"
    file.parent.mkdir(parents=True)
    if content is not None:
        file.write_bytes(content)
    oracle = FinishedPartsReused(scene.read_books, "artifacts", part_of, "part.write.before")
    finding = oracle.check(recovering(scene.evidence(), [label]))
    assert finding.evidence == (
        ("incarnation 2: 'c1/part' was whole and was made again",) if again else ()
    )
    assert (finding.answer is OracleStatus.BROKEN) == again


@pytest.mark.requirement("REC-03")
@pytest.mark.parametrize(("began", "broken"), [("one", False), ("two", True), (None, False)])
def test_a_result_of_another_input_is_found(
    scene: Scene, began: str | None, *, broken: bool
) -> None:
    """The evidence of any image counts."""
    evidence = f'{{"input": "{began}"}}' if began else ""
    running = AttemptRow("a1", "c1", "compute/1", "RUNNING", has_result=False, evidence=evidence)
    scene.put_books(WorkerState(1, attempts=(running,)), scene.crash)
    scene.put_books(
        WorkerState(1, outbox=(RESULT,)), scene.settled, scene.after_restart, scene.final
    )
    finding = InputKept(scene.read_books).check(scene.evidence())
    assert (finding.answer is OracleStatus.BROKEN) == broken


def put_files(image: Image, *names: str) -> None:
    """Put files into the artifacts of an image."""
    for name in names:
        path = image.worker_dir / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")


@pytest.mark.requirement("REC-08")
def test_a_mixture_of_versions_is_found(scene: Scene) -> None:
    """A mixture of versions is found, also in a temporary file."""
    known = frozenset({hashlib.sha256(b"good").hexdigest()})
    oracle = OneVersion("files", known, lambda path: path.endswith(".tmp"))
    put_files(scene.final, "good", "half.tmp")
    assert oracle.check(scene.evidence()).answer is OracleStatus.HOLDS
    put_files(scene.settled, "mixed")
    found = oracle.check(scene.evidence())
    assert found.evidence == ("at rest: file 'mixed' is not a version of its source",)


def tree_of(_command: Command) -> dict[str, str]:
    """Return the files of the one command."""
    return {"c1/a": "", "c1/b": ""}


@pytest.mark.requirement("ZIP-03")
def test_a_part_of_a_tree_is_found(scene: Scene) -> None:
    """All files of the tree stand there or none, in every image."""
    put_files(scene.final, "c1/a", "c1/b")
    oracle = TreesWhole("files", tree_of)
    assert oracle.check(scene.evidence()).answer is OracleStatus.HOLDS
    put_files(scene.crash, "c1/b")
    found = oracle.check(scene.evidence())
    assert found.evidence == ("after incarnation 1: 1 of 2 files of 'c1' are there",)


@pytest.mark.requirement("INV-12", "ZIP-01")
def test_what_lies_outside_is_found(scene: Scene) -> None:
    """What does not belong at the top of the worker's directory is found."""
    put_files(scene.final, "good")
    oracle = NothingOutside(("files",))
    assert oracle.check(scene.evidence()).answer is OracleStatus.HOLDS
    (scene.crash.worker_dir / "escaped.txt").touch()
    found = oracle.check(scene.evidence())
    assert found.answer is OracleStatus.BROKEN
