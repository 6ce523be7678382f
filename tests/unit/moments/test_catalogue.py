"""The catalogue: declared points, read from source."""

from __future__ import annotations

import sys
from itertools import count
from typing import TYPE_CHECKING

import pytest

from harness.model.errors import UnknownNameError, UsageError
from harness.model.schedule import parse
from harness.moments.catalogue import Catalogue, DeclaredPoint, scan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Package = Callable[[dict[str, str]], str]

_numbers = count(1)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    """Give a function that writes a package and returns its import name."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(files: dict[str, str]) -> str:
        # A name of its own each time: Python remembers what it has imported.
        name = f"scanned_package_{next(_numbers)}"
        for path, text in {"__init__.py": "", **files}.items():
            file = tmp_path / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return name

    return write


def test_every_way_to_call_a_point_is_found(package: Package) -> None:
    """A call by name, by alias, as an attribute, however deep, with its line."""
    name = package(
        {
            "calls.py": (
                "from harness import points\n"
                "import harness.points as hp\n"
                "from harness.points import crash_point, crash_point as mark\n"
                "crash_point('name.call.before')\n"
                "mark('alias.call.before')\n"
                "points.crash_point('attribute.call.before')\n"
                "harness.points.crash_point('dotted.call.before')\n"
                "class A:\n"
                "    async def method(self):\n"
                "        def inner():\n"
                "            return [crash_point(\n"
                "                'deep.call.before') for _ in ()]\n"
                "        await other(lambda: crash_point('lambda.call.before'))\n"
            )
        }
    )
    assert {point.label: point.line for point in scan([name])} == {
        "name.call.before": 4,
        "alias.call.before": 5,
        "attribute.call.before": 6,
        "dotted.call.before": 7,
        "deep.call.before": 11,
        "lambda.call.before": 13,
    }


def test_what_is_no_call_of_a_point_is_not_found(package: Package) -> None:
    """A mention, a comment, a text and another function's alias declare nothing."""
    name = package(
        {
            "calls.py": (
                "from harness.points import crash_point\n"
                "from elsewhere import other as mark\n"
                "# crash_point('comment.is.before')\n"
                "text = \"crash_point('text.is.before')\"\n"
                "alone = crash_point\n"
                "mark('no label')\n"
            )
        }
    )
    assert len(scan([name])) == 0


def test_files_are_read_through_and_through(package: Package) -> None:
    """Files in folders count; a path begins with the package's name."""
    name = package(
        {
            "__init__.py": "crash_point('a.top.before')",
            "sub/__init__.py": "",
            "sub/deep/leaf.py": "\n\ncrash_point('a.leaf.before')",
        }
    )
    catalogue = scan([name])
    assert catalogue.labels == ("a.leaf.before", "a.top.before")
    assert catalogue["a.leaf.before"].source == f"{name}/sub/deep/leaf.py:3"
    assert catalogue["a.top.before"].source == f"{name}/__init__.py:1"


def test_a_sub_package_and_a_module_are_scanned_alone(
    package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names with dots work, and show the same place as the whole package does."""
    name = package(
        {
            "one.py": "crash_point('a.one.before')",
            "sub/__init__.py": "",
            "sub/two.py": "crash_point('a.two.before')",
        }
    )
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    whole = scan([name])
    assert list(scan([f"{name}.one"])) == [whole["a.one.before"]]
    assert list(scan([f"{name}.sub"])) == [whole["a.two.before"]]
    assert list(scan([f"{name}.sub", name, f"{name}.one", name])) == list(whole)


def test_a_file_that_changes_is_read_anew(package: Package, tmp_path: Path) -> None:
    """A file is parsed once for many scenarios, and again when it says something else."""
    name = package({"point.py": "crash_point('some.one.before')\n"})
    assert scan([name]).labels == ("some.one.before",)
    (tmp_path / name / "point.py").write_text("crash_point('some.two.before')\n", encoding="utf-8")
    assert scan([name]).labels == ("some.two.before",)


def test_the_names_of_the_context_are_kept(package: Package) -> None:
    """Context keys are listed in their order; unpacked ones cannot be known."""
    name = package({"calls.py": "crash_point('a.b.before', command=c, part=1, **more)"})
    (point,) = scan([name])
    assert point.context == ("command", "part")
    assert point.more_context


def test_nothing_is_run(package: Package) -> None:
    """A file with points is parsed, not imported."""
    name = package({"calls.py": "crash_point('a.b.before')\nraise SystemExit(1)"})
    assert scan([name]).labels == ("a.b.before",)
    assert name not in sys.modules


@pytest.mark.parametrize("apart", [True, False])
def test_a_label_at_two_places_is_refused(package: Package, *, apart: bool) -> None:
    """A label names one place; the message shows both."""
    call = "crash_point('a.b.before')\n"
    files = {"one.py": call, "two.py": "\n" + call} if apart else {"one.py": call + "\n" + call}
    name = package(files)
    second = f"{name}/two.py:2" if apart else f"{name}/one.py:3"
    with pytest.raises(
        UsageError, match=f"'a.b.before' is declared twice: {name}/one.py:1 and {second}"
    ):
        scan([name])


def test_a_label_in_two_packages_is_refused(package: Package) -> None:
    """A scenario's packages have one catalogue."""
    names = [package({"one.py": "crash_point('a.b.before')"}) for _ in range(2)]
    with pytest.raises(UsageError, match="declared twice"):
        scan(names)


@pytest.mark.parametrize(
    "call",
    ["crash_point(label)", "crash_point(f'a.{b}.before')", "crash_point()", "crash_point(1)"],
)
def test_a_label_that_is_no_literal_is_refused(package: Package, call: str) -> None:
    """The catalogue can only be read from literals; the message says where."""
    name = package({"calls.py": f"\n{call}"})
    with pytest.raises(UsageError, match=rf"{name}/calls\.py:2: the label .* literal string"):
        scan([name])


@pytest.mark.parametrize("label", ["", "a.before", "a.b.later", "A.b.before", "a.b.c.before"])
def test_a_malformed_label_is_refused(package: Package, label: str) -> None:
    """A label that does not read as one is shown with its place."""
    name = package({"calls.py": f"crash_point({label!r})"})
    with pytest.raises(UsageError, match=rf"{name}/calls\.py:1: label '{label}' must match"):
        scan([name])


def test_a_file_that_is_no_python_is_refused(package: Package) -> None:
    """A file whose points cannot be read is not passed over."""
    name = package({"bad.py": "crash_point('a.b.before')\ndef (:\n"})
    with pytest.raises(UsageError, match=rf"{name}/bad\.py:2: not Python"):
        scan([name])


@pytest.mark.parametrize("name", ["no_such_package_at_all", "no_such_package_at_all.sub", ""])
def test_an_unknown_package_is_refused(name: str) -> None:
    """A name that cannot be found is an error, not an empty catalogue."""
    with pytest.raises(UsageError, match=f"no package or module {name!r}"):
        scan([name])


def test_no_names_give_an_empty_catalogue() -> None:
    """A worker without points has none."""
    assert scan([]).labels == ()


def test_an_unknown_label_gives_the_nearest() -> None:
    """Asked for a label that is not declared, it names the nearest."""
    catalogue = Catalogue(
        [
            DeclaredPoint("ack.send.before", "p/a.py", 1),
            DeclaredPoint("outbox.mark.after", "p/a.py", 2),
        ]
    )
    assert "ack.send.before" in catalogue
    assert "ack.send.befor" not in catalogue
    for label in ("ack.send.befor", "ack.sent.before", "akc.send.before", "ACK.send.before"):
        with pytest.raises(UnknownNameError, match=r"did you mean 'ack\.send\.before'"):
            catalogue[label]


def test_a_moment_that_no_point_can_have_is_refused() -> None:
    """A misspelt context key was accepted, and the strike never happened."""
    catalogue = Catalogue(
        [
            DeclaredPoint("ack.send.before", "p/a.py", 1, ("command", "part")),
            DeclaredPoint("step.run.before", "p/a.py", 2, ("run",), more_context=True),
            DeclaredPoint("run.end.before", "p/a.py", 3),
        ]
    )
    catalogue.check(parse("ack.send.before[command=c2]=kill / step.run.before[any=1]=kill"))
    with pytest.raises(UnknownNameError, match=r"'comand'; did you mean 'command'"):
        catalogue.check(parse("ack.send.before[comand=c2]=kill"))
    with pytest.raises(UnknownNameError, match=r"no context key of run\.end\.before"):
        catalogue.check(parse("ack.send.before=kill / run.end.before[run=r1]=kill"))
    with pytest.raises(UnknownNameError, match=r"did you mean 'run\.end\.before'"):
        catalogue.check(parse("run.edn.before=kill"))
