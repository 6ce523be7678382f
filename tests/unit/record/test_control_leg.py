"""What a record says of the control leg: its first incarnation, and what was durable then."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness_doubles import broken, facts, hits, put_facts, result

from harness.images.run_folder import RunFolder
from harness.model.schedule import CONTROL, parse
from harness.record.control_leg import control_row
from harness.record.states import read_held

if TYPE_CHECKING:
    from pathlib import Path

AT = parse("a.b.before=kill")


def _image(path: Path, text: str) -> Path:
    (path / "worker").mkdir(parents=True)
    (path / "world").mkdir()
    (path / "worker" / "note").write_text(text, encoding="utf-8")
    return path


def test_control_leg_is_told_until_its_rest(tmp_path: Path) -> None:
    """The control leg has a timeline of its own and a final state to compare with."""
    control = result(incarnations=[hits("a.b.before", "a.b.after"), hits("a.b.before")])
    failure = replace(
        broken(AT, "first"),
        incarnations=result(AT, [hits("a.b.before"), hits("a.b.before")]).incarnations,
    )
    image = _image(tmp_path / "control", "done")
    put_facts(image / "world", facts(acked=["c1"]))
    recovered = read_held(_image(tmp_path / "recovered", "lost"))
    row = control_row(failure, control, image, recovered)
    assert [(each["what"], each["text"]) for each in row["history"]] == [
        ("started", "started"),
        ("point", "a.b.before"),
        ("point", "a.b.after"),
        ("fact", "command c1 acknowledged by session-1"),
        ("ended", "killed by SIGKILL"),
    ]
    assert row["state"] is not None
    (note,) = [file for file in row["state"]["files"] if file["path"] == "worker/note"]
    assert note["change"] == "changed"
    assert row["points"] == [
        {"label": "a.b.before", "here": 2, "control": 1},
        {"label": "a.b.after", "here": 0, "control": 1},
    ]


def test_control_leg_that_was_not_kept_has_its_points_alone(tmp_path: Path) -> None:
    """A record that is made where no image was kept says what is known, and no more."""
    control = result(incarnations=[hits("a.b.before")])
    row = control_row(broken(AT, "first"), control, tmp_path / "nowhere", None)
    assert [each["what"] for each in row["history"]] == ["started", "point", "ended"]
    assert row["state"] is None


def test_broken_control_leg_is_not_shown_beside_itself(tmp_path: Path) -> None:
    """A failure without a strike is the control leg: there is nothing to put beside it."""
    control = replace(
        broken(CONTROL, "first"),
        incarnations=result(incarnations=[hits("a.b.before")]).incarnations,
    )
    image = _image(tmp_path / "control", "done")
    row = control_row(control, control, image, read_held(image))
    assert (row["history"], row["state"]) == ([], None)


def test_images_of_control_legs_are_forgotten(tmp_path: Path) -> None:
    """What failures left stays; a directory in which nothing is left goes."""
    run = RunFolder(tmp_path)
    run.control_image("orders").mkdir(parents=True)
    run.failure("0123").path.mkdir()
    run.forget_control_legs()
    assert [path.name for path in run.kept.iterdir()] == ["0123"]
    run.failure("0123").path.rmdir()
    run.forget_control_legs()
    assert not run.kept.exists()
    run.forget_control_legs()
