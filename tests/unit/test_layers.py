"""The layer table of ARCHITECTURE.md, enforced."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _table() -> dict[str, tuple[set[str], set[str]]]:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = text.split("<!-- layers -->")[1].split("<!-- /layers -->")[0].strip().splitlines()[2:]
    table = {}
    for row in rows:
        name, modules, allowed = (cell.strip() for cell in row.strip("|").split("|"))
        table[name] = (
            {module.strip(" `") for module in modules.split(",")},
            {layer.strip() for layer in allowed.split(",") if layer.strip()},
        )
    return table


LAYERS = _table()


def _layer(module: str) -> str | None:
    """Return the layer with the longest name that the module is, or is below."""
    best = ""
    found = None
    for layer, (modules, _) in LAYERS.items():
        for name in modules:
            package = name not in ("harness", "worker_under_test")
            if (module == name or (package and module.startswith(name + "."))) and len(name) > len(
                best
            ):
                best, found = name, layer
    return found


def _imports(tree: ast.Module, modules: set[str]) -> set[str]:
    """Return the modules of ours that a file imports, for typing alone or not."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            below = {f"{node.module}.{alias.name}" for alias in node.names} & modules
            found |= below or {node.module}
    return {name for name in found if name.split(".")[0] in ("harness", "worker_under_test")}


def _modules() -> dict[str, Path]:
    found = {}
    for package in ("harness", "worker_under_test"):
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


MODULES = _modules()


@pytest.mark.parametrize("module", sorted(MODULES))
def test_module_imports_only_what_its_layer_may(module: str) -> None:
    """Every module is in a layer and keeps to it."""
    layer = _layer(module)
    assert layer is not None, f"{module} is in no layer of ARCHITECTURE.md"
    allowed = {layer} | LAYERS[layer][1]
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    for name in _imports(tree, set(MODULES)):
        other = _layer(name)
        assert other in allowed, f"{module} ({layer}) imports {name} ({other})"


def test_rooms_form_no_circle() -> None:
    """The table read as a graph has an order, from `points` up to the front ends."""
    tuple(
        TopologicalSorter({layer: allowed for layer, (_, allowed) in LAYERS.items()}).static_order()
    )


def test_modules_form_no_circle() -> None:
    """No module of a room needs itself, by whatever way round."""
    graph = {
        module: _imports(ast.parse(path.read_text(encoding="utf-8")), set(MODULES)) - {module}
        for module, path in MODULES.items()
    }
    tuple(TopologicalSorter(graph).static_order())


def test_worker_imports_nothing_of_the_harness_but_points() -> None:
    """The worker imports nothing of the harness but `harness.points`."""
    for module, path in MODULES.items():
        if module.startswith("worker_under_test"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            ours = {name for name in _imports(tree, set(MODULES)) if name.startswith("harness")}
            assert ours <= {"harness.points"}, module


def test_every_layer_of_the_table_exists() -> None:
    """A layer that names no module is a mistake in the table."""
    for layer, (names, allowed) in LAYERS.items():
        assert allowed <= set(LAYERS), layer
        for name in names:
            assert any(module == name or module.startswith(name + ".") for module in MODULES), name


def test_modules_are_read_in_one_sitting() -> None:
    """CONTRIBUTING: past 500 lines a module, also of tests, is split along a seam with a name."""
    folders = ("harness", "worker_under_test", "scenarios", "benchmarks", "tests")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert {MODULES["harness.cli.run"], Path(__file__)} <= set(paths)
    for path in paths:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 500, path
        assert path.stem not in ("utils", "helpers", "common"), path
