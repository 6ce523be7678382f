"""Where scenarios come from, and which of them are meant."""

from __future__ import annotations

import sys
from itertools import count
from typing import TYPE_CHECKING

import pytest
from harness_doubles import scenario

from harness.explore.scenario_files import judged_by, load, select
from harness.model.errors import UnknownNameError, UsageError
from harness.scenario import broken_by

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.scenario import Scenario

    Module = Callable[..., Path]

HEAD = """
from harness.oracles.processes import NoSurvivors
from harness.scenario import Scenario
from harness.model.workload import Command, Workload

def made(name):
    return Scenario(name, print, lambda seed: Workload((), Command("f")), (NoSurvivors(),))
"""

_numbers = count(1)


@pytest.fixture(autouse=True)
def separate_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget afterwards what a test has imported."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))


@pytest.fixture
def module(tmp_path: Path) -> Module:
    """Give a function that writes a module whose name is new."""

    def write(text: str, folder: str = "", stem: str = "") -> Path:
        file = tmp_path / folder / f"{stem or f'tried_module_{next(_numbers)}'}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(HEAD + text, encoding="utf-8")
        return file

    return write


def test_a_file_gives_the_scenarios_that_it_assigns(module: Module) -> None:
    """A scenario stands alone or in a collection, plain or annotated; the rest is passed over."""
    file = module(
        "ONE = made('one')\n"
        "TWO: Scenario = made('two')\n"
        "A = B = made('twice-assigned')\n"
        "BOTH = (made('in-tuple'), 'no scenario', made('also'))\n"
        "OTHER = 1\n"
        "DECLARED: int\n"
        "def f():\n"
        "    HIDDEN = made('hidden')\n"
    )
    known = load(file)
    assert list(known) == ["also", "in-tuple", "one", "twice-assigned", "two"]
    assert all(name == each.name for name, each in known.items())


@pytest.mark.parametrize(
    "text",
    [
        "SCENARIOS = [made('a'), made('b')]",
        "SCENARIOS = (made('a'), 1, made('b'))",
        "SCENARIOS = {made('a'), made('b')}",
        "SCENARIOS = frozenset([made('a'), made('b')])",
        "SCENARIOS = {'first': made('a'), 'second': made('b')}",
        "SCENARIOS = {'first': made('a'), 'second': made('b')}.values()",
        "SCENARIOS = [made(name) for name in 'ab']",
        "SCENARIOS: list[Scenario] = []\nSCENARIOS.append(made('a'))\nSCENARIOS += [made('b')]",
        "A, [B] = made('a'), [made('b')]",
        "FIRST, *REST = made('a'), made('b')",
        "if True:\n    A = made('a')\ntry:\n    1 / 0\nexcept ArithmeticError:\n    B = made('b')",
        "import contextlib\nwith contextlib.nullcontext():\n    B = [made('a'), made('b')]",
    ],
)
def test_scenarios_stand_in_any_collection(module: Module, text: str) -> None:
    """A list of scenarios was not found, nor one under an ``if``."""
    assert list(load(module(text))) == ["a", "b"]


def test_a_generator_is_not_used_up(module: Module) -> None:
    """What can be read only once is its owner's, and may have no end."""
    file = module("import itertools\nONE = made('one')\nENDLESS = itertools.repeat(made('two'))")
    assert list(load(file)) == ["one"]


def test_a_folder_is_searched_through_and_through(module: Module, tmp_path: Path) -> None:
    """Files in folders count; order comes from the names of the scenarios."""
    module("Z = made('z')")
    module("A = made('a')", folder="deep/deeper")
    (tmp_path / "notes.txt").write_text("Z = made('no')")
    assert list(load(str(tmp_path))) == ["a", "z"]


def test_a_scenario_that_was_imported_is_not_the_importers(module: Module, tmp_path: Path) -> None:
    """A variant made from another module's scenario does not collect that one too."""
    first = module("ONE = made('one')")
    second = module(f"from {first.stem} import ONE\nTWO = made('two')")
    assert list(load(second)) == ["two"]
    assert list(load(tmp_path)) == ["one", "two"]


def test_a_module_in_a_package_has_its_whole_name(module: Module, tmp_path: Path) -> None:
    """Relative imports work: the name begins at the first folder without ``__init__.py``."""
    package = f"tried_package_{next(_numbers)}"
    module("ONE = made('one')", folder=f"{package}/sub", stem="one")
    module("from .one import made\nTWO = made('two-' + __name__)", f"{package}/sub", "two")
    for folder in (package, f"{package}/sub"):
        module("", folder, "__init__")
    assert list(load(tmp_path / package)) == ["one", f"two-{package}.sub.two"]
    assert f"{package}.sub.one" in sys.modules


def test_two_scenarios_of_one_name_are_refused(module: Module, tmp_path: Path) -> None:
    """A name means one scenario; the message says where the other one is."""
    module("ONE = made('same')", stem="a_first")
    second = module("ONE = made('same')", stem="b_second")
    with pytest.raises(UsageError, match=f"two scenarios are named 'same'; one is in {second}"):
        load(tmp_path)


def test_one_scenario_under_two_names_is_one(module: Module) -> None:
    """The same value, assigned twice, is no second scenario."""
    assert list(load(module("ONE = made('one')\nTUPLE = (ONE, ONE)"))) == ["one"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise RuntimeError('no database')", "RuntimeError: no database"),
        ("import no_such_module_at_all", "ModuleNotFoundError: No module named"),
        ("def (:", "SyntaxError: "),
        ("BAD = made('Not A Name')", "UsageError: scenario name 'Not A Name'"),
    ],
)
def test_a_module_that_cannot_be_imported(module: Module, text: str, reason: str) -> None:
    """The caller's mistake is a usage error that says which file and why."""
    file = module(text)
    with pytest.raises(UsageError, match=f"^{file} cannot be imported: {reason}") as caught:
        load(file)
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("name", ["missing", "missing.py", "notes.txt"])
def test_a_path_that_has_no_scenarios(tmp_path: Path, name: str) -> None:
    """A path must be a folder or a Python file."""
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(UsageError, match="give a folder or a Python file with --scenarios"):
        load(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "assigns nothing"),
        ("ONE = 1\nMADE = made", "assigns ONE (int), MADE (function)"),
        ("LATER = (made(n) for n in 'ab')", "assigns LATER (generator)"),
        ("\n".join(f"N{n} = 0" for n in range(10)), "N7 (int), 2 more"),
    ],
)
def test_a_file_without_scenarios_says_what_was_looked_at(
    module: Module, text: str, found: str
) -> None:
    """It said that no module has a Scenario, and not what it had found in their place."""
    file = module(text)
    with pytest.raises(UsageError) as caught:
        load(file)
    assert f"no scenario at {str(file)!r}: {file.name} assigns " in str(caught.value)
    assert f"{found}; assign a Scenario at the top of a module" in str(caught.value)


def test_a_folder_without_scenarios(module: Module, tmp_path: Path) -> None:
    """Nothing to run is an error, not a run that is as pinned."""
    module("ONE = 1")
    module("TWO = 2")
    with pytest.raises(UsageError, match="2 modules assign none"):
        load(tmp_path)


def known(*names: str) -> dict[str, Scenario]:
    """Return scenarios by name."""
    return {name: scenario(name) for name in names}


def test_named_scenarios_are_selected_in_the_order_given() -> None:
    """No name means all; a name given twice counts once."""
    every = known("a", "b", "c")
    assert [each.name for each in select(every, [])] == ["a", "b", "c"]
    assert [each.name for each in select(every, ["c", "a", "c"])] == ["c", "a"]


def test_an_unknown_scenario_gives_the_nearest() -> None:
    """An unknown scenario is an error with the nearest known name."""
    message = "unknown scenario 'referense'; did you mean 'reference'"
    with pytest.raises(UnknownNameError, match=message):
        select(known("reference", "orders"), ["orders", "referense"])


def test_judged_by_keeps_the_named_oracles_alone() -> None:
    """Only scenarios with such an oracle are left, in their order."""
    both = scenario("both", oracles=("x", "y", "z"))
    one = scenario("one", oracles=("z",))
    none = scenario("none", oracles=("y",))
    kept = judged_by([both, one, none], ["z", "x", "z"])
    assert [(s.name, [o.name for o in s.oracles]) for s in kept] == [
        ("both", ["x", "z"]),
        ("one", ["z"]),
    ]
    assert judged_by([both, one, none], []) == (both, one, none)


def test_judged_by_leaves_out_what_another_oracle_must_catch() -> None:
    """A known-bad worker is kept when the oracle that it is pinned to is among the named."""
    bad = scenario("bad", oracles=("x", "y"), pin=broken_by("y"))
    assert judged_by([bad], ["x"]) == ()
    assert [each.pin for each in judged_by([bad], ["x", "y"])] == [bad.pin]
    assert [[o.name for o in s.oracles] for s in judged_by([bad], ["y"])] == [["y"]]


def test_judged_by_the_oracle_that_judges_every_scenario() -> None:
    """It is listed like the others, so it can be named like the others."""
    (alone,) = judged_by([scenario("any", oracles=("x", "y"))], ["starts-again"])
    assert [oracle.name for oracle in alone.judges] == ["starts-again"]


def test_an_unknown_oracle_gives_the_nearest() -> None:
    """An oracle that no scenario has is an error."""
    with pytest.raises(UnknownNameError, match="unknown oracle 'fist'; did you mean 'first'"):
        judged_by([scenario()], ["fist"])
