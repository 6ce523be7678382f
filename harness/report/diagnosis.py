"""Why a promise broke, in sentences: the neighbours of a strike, and what was known of its subject.

The subject is what the first broken promise names: a command, a run, a file. What the world had
seen of it is put beside what the disk had of it, at the strike and after the restart.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness.report.view_model import broken_promises

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from harness.record.failure_schema import FailureRecord, StateRow, StrikeRow, TableRow

_SEEN = 2
_TABLES = 5
_FILES = 2
_SUBJECTS = 3
_CHARS = 110
_QUOTED = re.compile("'([^'\n]{1,80})'")
_WORD = re.compile("[A-Za-z_]{3,14}")


def why(record: FailureRecord) -> tuple[tuple[str, str], ...]:
    """Say what the strikes fell between, what was known then, and what came of it.

    Returns:
        What each text is about, and the text.
    """
    strikes = record["strikes"]
    if not strikes:
        return (("Without a strike", "it breaks in the control leg, so no crash is needed"),)
    last = strikes[-1]["incarnation"]
    later = range(last + 1, len(record["incarnations"]) + 1)
    subjects = _subjects(record)
    names = frozenset({*subjects, *_attempts_of(record, subjects)})
    about = " and ".join(subjects) or "it"
    reasons = (
        *(("Killed", _between(strike)) for strike in strikes),
        ("World by then:", "; ".join(_seen(record, names, range(last + 1)))),
        ("Disk by then:", _on_disk(record, last, names, about)),
        ("Recovery decided:", _decided(record, later, names)),
        ("World after that:", "; ".join(_seen(record, names, later, first=True))),
        ("Control leg:", _only_in_control(record, names, about)),
    )
    return tuple((label, text) for label, text in reasons if text)


def _between(strike: StrikeRow) -> str:
    """Name the neighbours of a strike, and say once what they are about."""
    before, about = _parts((strike["passed"] or [""])[-1])
    after, other = _parts(strike["next_in_control"])
    place = [f"after {before}"] * bool(before) + [f"before {after}"] * bool(after)
    text = " and ".join(place) or f"at {strike['moment']}"
    about = about or other
    return f"{text} ({about})" if about else text


def _parts(named: str) -> tuple[str, str]:
    label, _, about = named.partition("[")
    return label, about.removesuffix("]").replace("=", " ")


def _subjects(record: FailureRecord) -> tuple[str, ...]:
    known = set(_names(record))
    for row in broken_promises(record)[:1]:
        found = [name for name in _QUOTED.findall(row.found[0]) if name in known]
        if found:
            return tuple(dict.fromkeys(found))[:_SUBJECTS]
    struck = next((r for r in reversed(record["history"]) if r["what"] == "struck"), None)
    return tuple((struck["context"] if struck else {}).values())[-1:]


def _names(record: FailureRecord) -> Iterator[str]:
    """Give every name that a promise may speak of."""
    yield from (row["command_id"] for row in record["commands"])
    yield from (row["attempt_id"] for row in record["decisions"])
    for effect in record["effects"]:
        yield from (effect["key"], *effect["key"].split("/"))
    for state in record["states"]:
        for file in state["files"]:
            parts = file["path"].split("/")
            yield from ("/".join(parts[start:]) for start in range(len(parts)))


def _attempts_of(record: FailureRecord, subjects: tuple[str, ...]) -> set[str]:
    """Return the attempts at the subjects, by the rows that name both."""
    attempts = {row["attempt_id"] for row in record["decisions"]}
    return {
        cell
        for state in record["states"]
        for table in state["tables"]
        for row in table["rows"]
        if _mentions(row["cells"], subjects)
        for cell in row["cells"]
        if cell in attempts
    }


def _on_disk(record: FailureRecord, incarnation: int, names: Collection[str], about: str) -> str:
    for state in record["states"]:
        if state["incarnation"] == incarnation:
            return ", ".join(_held(state, names)) or f"nothing of {about}"
    return ""


def _decided(record: FailureRecord, incarnations: Collection[int], names: Collection[str]) -> str:
    for row in record["decisions"]:
        if row["incarnation"] in incarnations and row["attempt_id"] in names:
            return f"{row['decision']}, because {row['reason']}"[:_CHARS]
    return ""


def _only_in_control(record: FailureRecord, names: Collection[str], about: str) -> str:
    """Name the tables in which the control leg ends with something that this experiment lacks."""
    state = record["control"]["state"]
    tables = [] if state is None else [t for t in state["tables"] if _is_workers(t["database"])]
    lacking = [
        table["table"]
        for table in tables
        if _rows(table["rows"], names, "added", "changed", "same")
        and not _rows(table["rows"], names, "removed", "same")
        and not any(_mentions(row["before"], names) for row in table["rows"])
    ]
    if not lacking:
        return ""
    return f"{about} ends up in {_listed(lacking, _TABLES)}; here it does not"


def _seen(
    record: FailureRecord,
    names: Collection[str],
    incarnations: Collection[int],
    *,
    first: bool = False,
) -> list[str]:
    rows = [
        row
        for row in record["history"]
        if row["lane"] == "world"
        and row["incarnation"] in incarnations
        and _mentions((row["text"],), names)
    ]
    # Effects are what a promise is about more often than messages.
    facts = [row for row in rows if row["what"] == "fact"]
    effects = [row for row in rows if row["what"] == "effect"]
    chosen = effects[:_SEEN] if first else effects[-_SEEN:]
    chosen += facts[len(facts) + len(chosen) - _SEEN :]
    return [row["text"][:_CHARS] for row in sorted(chosen, key=lambda row: row["order"])]


def _held(state: StateRow, names: Collection[str]) -> list[str]:
    found = []
    for table in state["tables"]:
        rows = _rows(table["rows"], names, "added", "changed", "same")
        if rows and _is_workers(table["database"]):
            words = dict.fromkeys(c for row in rows for c in row["cells"] if _WORD.fullmatch(c))
            end = f" ({_listed(list(words), _SEEN)})" if words else ""
            found.append(f"{table['table']} {len(rows)} row{'s' * (len(rows) != 1)}{end}")
    files = [
        file["path"]
        for file in state["files"]
        if _is_workers(file["path"])
        and file["change"] != "removed"
        and _mentions((file["path"],), names)
    ]
    return [*found[:_TABLES], *files[:_FILES]]


def _is_workers(path: str) -> bool:
    return path.startswith("worker/")


def _rows(rows: Iterable[TableRow], names: Collection[str], *changes: str) -> list[TableRow]:
    return [row for row in rows if row["change"] in changes and _mentions(row["cells"], names)]


def _mentions(texts: Iterable[str], names: Collection[str]) -> bool:
    return any(
        re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)
        for text in texts
        for name in names
    )


def _listed(words: list[str], most: int) -> str:
    more = len(words) - most
    return ", ".join(words[:most]) + (f" and {more} more" if more > 0 else "")
