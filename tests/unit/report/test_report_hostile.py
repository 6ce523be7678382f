"""Nothing in a report can run: hostile text in every field of a record, through every renderer."""

from __future__ import annotations

import ast
import copy
import json
import re
import xml.etree.ElementTree as ET
from functools import cache
from html.parser import HTMLParser
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rendered import of_failure, of_run, terminal

from benchmarks.sample_records import failure_record, run_before, run_record
from harness.report.escaping import block, plain
from harness.report.html_failure import failure_page
from harness.report.junit import junit

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

MARK = "hOsTiLe"
FRAGMENTS = (
    "<script>alert(1)</script>",
    "</script></style></title></svg><evil-tag evil=1>",
    "'\"><img src=x onerror=alert(1)>",
    "<!-- --> ]]> <![CDATA[ <?php",
    "&lt;&#60;&amp;",
    "{{ 7 * 7 }}{% raw %}",
    "\x1b[2J\x1b]0;title\x07\x9b31m",
    "\x00\x08\x7f\u0085",
    "\n::error file=x::pwned\r\n::set-env name=PATH::x",
    "%0A::stop-commands::x",
    "\u202e\u2066\u200b\ufeff",
    "\ud800\udfff\udc80",
    "\ufffe\uffff",
    "`````` ``` `",
    "| a | b |\n|---|---|\n",
    "[x](javascript:alert(1)) ![i](https://evil.example/x.png) <https://evil.example>",
    "https://evil.example @someone #1",
    "\n\n# heading\n- item\n    code\n> quote\n***",
    "\\",
    '"""\nimport os\nos.system("x")\n"""',
    "[bold red]markup[/]",
    "x" * 5_000,
)
TEXTS = st.lists(
    st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=12)), min_size=1, max_size=5
).map(lambda parts: MARK + "".join(parts))

KEPT = {"schema", "verdict", "what", "lane", "change", "state"}
"""Keys whose values are one of a few words; the reader of a record refuses any other."""
FUZZ = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def infected(value: T, text: str) -> T:
    """Return a record in which every free text is replaced."""

    def walk(item: object, key: str) -> object:
        if isinstance(item, dict):
            return {name: walk(inner, name) for name, inner in item.items()}
        if isinstance(item, list):
            return [walk(inner, key) for inner in item]
        return text if isinstance(item, str) and key not in KEPT else item

    return walk(copy.deepcopy(value), "")  # type: ignore[return-value]


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: set[tuple[str, str]] = set()
        self.raw: list[str] = []
        self._in_raw = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add((tag, ""))
        for name, value in attrs:
            self.found.add((tag, name))
            assert not name.startswith("on"), (tag, name)
            if name in ("href", "src"):
                inside = tag == "use" and value in {"#drawn", "#drawn-control"}
                assert inside or (value or "").startswith("failures/"), value
        self._in_raw = tag if tag in ("script", "style") else ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._in_raw = ""

    def handle_endtag(self, tag: str) -> None:
        self._in_raw = ""

    def handle_data(self, data: str) -> None:
        if self._in_raw:
            self.raw.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)


def elements(page: str) -> tuple[set[tuple[str, str]], list[str]]:
    """Return the tags of a page with their attributes, and what stands in scripts and styles."""
    parser = _Elements()
    parser.feed(page)
    parser.close()
    return parser.found, parser.raw


@cache
def harmless() -> dict[str, str]:
    """Return what the renderers make of the sample."""
    return of_run(run_record(), run_before()) | of_failure(failure_record())


@FUZZ
@given(TEXTS)
def test_no_html_from_a_record(text: str) -> None:
    """No tag, no attribute, no script and no style comes from a record."""
    pages = of_run(infected(run_record(), text), run_before()) | of_failure(
        infected(failure_record(), text)
    )
    for name in ("run.html", "failure.html"):
        found, raw = elements(pages[name])
        allowed, ours = elements(harmless()[name])
        allowed |= {("p", "class"), ("span", "class"), ("tr", "class"), ("p", "")}
        assert found <= allowed, found - allowed
        assert raw == ours
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", pages[name])


@FUZZ
@given(TEXTS)
def test_no_markdown_from_a_record(text: str) -> None:
    """What comes from a record stands in code alone: no link, no mention, no heading."""
    outputs = of_run(infected(run_record(), text), None) | of_failure(
        infected(failure_record(), text)
    )
    parser = MarkdownIt("commonmark").enable("table")
    ours = {"sample/report.html", "sample/ISSUE.md", "sample/failure.json"}
    for name in ("summary.md", "ISSUE.md", "gallery.md"):
        for token in parser.parse(outputs[name]):
            assert token.type not in ("html_block", "code_block"), token.content
            for inner in token.children or ():
                assert inner.type not in ("html_inline", "image"), inner.content
                assert inner.type != "link_open" or inner.attrs["href"] in ours, inner.attrs
                assert inner.type == "code_inline" or MARK not in inner.content, inner.content


@FUZZ
@given(TEXTS)
def test_junit_stays_well_formed(text: str) -> None:
    """JUnit is XML whatever a record holds, with no element of its making."""
    root = ET.fromstring(junit(infected(run_record(), text)).encode())
    assert {element.tag for element in root.iter()} <= {
        "testsuites",
        "testsuite",
        "testcase",
        "failure",
        "error",
        "system-out",
    }
    assert len(list(root.iter("testcase"))) >= 2


@FUZZ
@given(TEXTS)
def test_terminal_obeys_nothing_of_a_record(text: str) -> None:
    """No escape reaches a terminal, and no line is a command to a CI system."""
    record = infected(run_record(), text)
    for scenario, row in zip(record["scenarios"], run_record()["scenarios"], strict=True):
        scenario["name"], scenario["pin"] = row["name"], row["pin"]
    for experiment, old in zip(record["experiments"], run_record()["experiments"], strict=True):
        experiment["scenario"], experiment["pin"] = old["scenario"], old["pin"]
    shown = terminal(record)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)
    assert not any(line.lstrip().startswith("::") for line in shown.splitlines())


@FUZZ
@given(TEXTS)
def test_annotations_are_one_command_a_line(text: str) -> None:
    """A record cannot give a CI system a command of its own."""
    record = infected(run_record(), text)
    for row in record["experiments"]:
        row["pin"] = "holds"
    lines = of_run(record, None)["annotations.txt"].splitlines()
    assert lines
    for line in lines:
        assert re.match(r"::(error|warning|notice)( (file|line|title)=[^:]*)?::", line), line


@FUZZ
@given(TEXTS)
def test_log_is_one_object_a_line(text: str) -> None:
    """The event log is NDJSON whatever a record holds."""
    record = infected(run_record(), text)
    lines = of_run(record, None)["events.ndjson"].splitlines()
    assert len(lines) == len(record["experiments"]) + 4, "an infected run is interrupted too"
    assert all(json.loads(line)["event"] for line in lines)


@FUZZ
@given(TEXTS)
def test_programs_hold_texts_as_literals(text: str) -> None:
    """A record changes the literals of `repro.py` and of the test, and nothing else."""
    outputs = of_failure(infected(failure_record(), text))
    for name in ("repro.py.txt", "test_repro.py.txt"):
        assert _shape(outputs[name]) == _shape(harmless()[name])


def _shape(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = 0
        if isinstance(node, ast.FunctionDef):
            node.name = "function"
    return ast.dump(tree)


@pytest.mark.parametrize("renderer", [failure_page])
def test_a_million_lines_stay_small(renderer: Callable[..., str]) -> None:
    """A report has a size, whatever the worker wrote."""
    record = failure_record()
    record["incarnations"][0]["output"] = "noise\n" * 1_000_000
    record["violations"] = [{"oracle": "loud", "message": "x" * 1_000_000}] * 1_000
    assert len(renderer(record)) < 300_000


def test_block_shows_the_end_and_says_what_it_left_out() -> None:
    """A bound that was reached is said."""
    assert block("a\n" * 100, lines=2) == ["… (98 lines before)", "a", "a"]
    assert plain("abcdef", 3) == "abc… (3 more characters)"
    assert plain("a\nb\x1b\x7f\u202e\ud800") == "a\u240ab\u241b\u2421\\u202e\\ud800"
