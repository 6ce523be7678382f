"""Reports of real runs: written, valid, rendered again, judged again, run again, pinned, fixed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

if TYPE_CHECKING:
    from acceptance_command import Command

ROOT = Path(__file__).parents[2]
WORKER = """
from pathlib import Path

from harness.oracles.effects import EveryCommandHasEffect, NoEffectTwice
from harness.points import crash_point
from harness.scenario import Scenario
from harness.model.workload import Command, Workload
from harness.world.ledger import EffectLedger


def worker(site):
    done = site.worker_dir / "done.txt"
    finished = done.read_text().split() if done.exists() else []
    ledger = EffectLedger(site.world_dir)
    crash_point("order.scan.before")
    for order in site.offered:
        if order.command_id in finished:
            continue
        crash_point("order.charge.before", order=order.command_id)
        if not FIXED or order.command_id not in {effect.key for effect in ledger.effects()}:
            ledger.record("charge", order.command_id)
        crash_point("order.charge.after", order=order.command_id)
        with done.open("a") as file:
            file.write(order.command_id + "\\n")


FIXED = Path(__file__).with_name("fixed").exists()
ORDERS = Scenario(
    name="orders",
    worker=worker,
    workload=lambda seed: Workload((Command("o1"), Command("o2")), fresh=Command("o3")),
    oracles=(NoEffectTwice(), EveryCommandHasEffect("charge"),),
    points=("shop",),
)
"""
AT = "order.charge.after#1=kill"


@pytest.fixture
def shop(command: Command) -> Path:
    """Give a worker that charges twice, in a folder of its own."""
    folder = command.out.parent / "shop"
    folder.mkdir()
    (folder / "shop.py").write_text(WORKER, encoding="utf-8")
    return folder / "shop.py"


def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((ROOT / "reports/schema.json").read_text(encoding="utf-8"))
    return schema


class _Counter(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


def test_every_report_of_a_run(command: Command, shop: Path) -> None:
    """One record gives all outputs, and it is valid by the published schema."""
    names = "html,junit,markdown,annotations,ndjson,issue"
    ran = command.run("--scenarios", str(shop), "--report", names)
    assert ran.code == 1, ran.out + ran.err
    run = command.out / "latest"
    written = {path.name for path in run.iterdir() if path.is_file()}
    assert written == {
        "results.json",
        "report.html",
        "junit.xml",
        "summary.md",
        "annotations.txt",
        "events.ndjson",
    }
    validator = jsonschema.Draft202012Validator(_schema())
    validator.validate(command.record())
    (folder,) = (run / "failures").iterdir()
    validator.validate(json.loads((folder / "failure.json").read_text(encoding="utf-8")))
    assert {"ISSUE.md", "report.html", "repro.py", "test_repro.py"} <= {
        path.name for path in folder.iterdir()
    }
    assert "::error file=" in ran.out
    events = (run / "events.ndjson").read_text(encoding="utf-8").splitlines()
    assert json.loads(events[-1])["event"] == "run_finished"
    assert (command.out / "failures" / folder.name / "report.html").exists()


def test_two_runs_leave_the_same_record_of_a_failure(command: Command, shop: Path) -> None:
    """The record of a failure, too, is the same for one seed."""
    texts = set()
    for _ in range(2):
        command.run("--scenarios", str(shop), "--at", AT)
        (folder,) = ((command.out / "latest").resolve() / "failures").iterdir()
        texts.add((folder / "failure.json").read_text(encoding="utf-8"))
    assert len(texts) == 1


def test_report_renders_an_old_record_again(command: Command, shop: Path) -> None:
    """`crash-harness report PATH` gives the same pages from the record alone."""
    command.run("--scenarios", str(shop), "--at", AT)
    run = (command.out / "latest").resolve()
    pages = {path: path.read_bytes() for path in run.rglob("report.html")}
    assert len(pages) == 2
    for path in pages:
        path.unlink()
    again = command("report", str(run), "--report", "html,junit")
    assert again.code == 0, again.err
    assert {path: path.read_bytes() for path in run.rglob("report.html")} == pages
    assert (run / "junit.xml").exists()


def test_failure_is_judged_again_without_running_it(command: Command, shop: Path) -> None:
    """`recheck` judges old crash images with today's oracles."""
    command.run("--scenarios", str(shop), "--at", AT)
    run = command.out / "latest"
    broken = command("recheck", str(run))
    assert broken.code == 1, broken.out + broken.err
    assert "broken now: no-effect-twice" in broken.out
    text = shop.read_text(encoding="utf-8")
    shop.write_text(text.replace("(NoEffectTwice(), ", "("), encoding="utf-8")
    held = command("recheck", str(run))
    assert held.code == 0, held.out + held.err
    assert "broken now: none" in held.out
    (folder,) = (run / "failures").iterdir()
    record = json.loads((folder / "failure.json").read_text(encoding="utf-8"))
    record["schema"] = "crash-harness/failure/2"
    (folder / "failure.json").write_text(json.dumps(record), encoding="utf-8")
    refused = command("repro", str(folder))
    assert refused.code == 2
    assert "this version reads 'crash-harness/failure/4'" in refused.err


def test_schedule_is_run_again_by_its_name(command: Command, shop: Path) -> None:
    """`repro` takes a schedule as reports print it."""
    again = command("repro", f"orders[{AT}]", "--scenarios", str(shop), "--times", "2")
    assert again.code == 1, again.out + again.err
    assert "still broken: 2 of 2 runs gave fingerprint" in again.out
    held = command("repro", "orders[order.charge.before=kill]", "--scenarios", str(shop))
    assert held.code == 0, held.out + held.err
    never = command("repro", "orders[order.charge.before#9=kill]", "--scenarios", str(shop))
    assert never.code == 3, never.out + never.err
    misspelt = command("repro", f"ordrs[{AT}]", "--scenarios", str(shop))
    assert misspelt.code == 2
    assert "'orders'" in misspelt.err


def test_program_and_test_in_the_folder_show_the_failure(command: Command, shop: Path) -> None:
    """`repro.py` uses the public API and exits 1; the test fails until it is fixed."""
    command.run("--scenarios", str(shop), "--at", AT)
    (folder,) = ((command.out / "latest").resolve() / "failures").iterdir()
    program = subprocess.run(
        [sys.executable, folder / "repro.py"], capture_output=True, text=True, check=False
    )
    assert program.returncode == 1, program.stderr
    assert "no-effect-twice" in program.stdout
    pasted = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder / "test_repro.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert pasted.returncode == 1, pasted.stdout
    assert "no-effect-twice: charge 'o1' happened 2 times" in pasted.stdout


def test_fixed_failure_leaves_its_folder(command: Command, shop: Path) -> None:
    """The folder of a failure is removed by the next run that shows it fixed."""
    assert command.run("--scenarios", str(shop), "--at", AT).code == 1
    (link,) = (command.out / "failures").iterdir()
    folder = link.resolve()
    assert command.run("--scenarios", str(shop), "--at", "order.charge.before=kill").code == 0
    assert link.exists(), "another schedule says nothing of it"
    shop.with_name("fixed").touch()
    fixed = command.run("--scenarios", str(shop), "--at", AT)
    assert fixed.code == 0, fixed.out + fixed.err
    assert not link.is_symlink()
    assert not folder.exists()
    page = (command.out / "latest" / "report.html").read_text(encoding="utf-8")
    assert "Changed since the previous run" in page


def test_pinned_failure_passes_until_it_is_fixed(command: Command, shop: Path) -> None:
    """A pinned failure passes, a new one fails, a fixed one is to be unpinned."""
    pins = shop.with_name("pins.toml")
    pins.write_text(
        f'[[pin]]\nscenario = "orders"\nschedule = "{AT}"\nreason = "known"\ndate = 2026-11-30\n',
        encoding="utf-8",
    )
    known = ["--scenarios", str(shop), "--pins", str(pins)]
    passed = command.run(*known, "--at", AT)
    assert passed.code == 0, passed.out + passed.err
    assert "1 still broken" in passed.out
    assert command.record()["pins"][0]["state"] == "broken"
    new = command.run(*known, "--at", f"order.scan.before=kill / {AT}")
    assert new.code == 1, new.out + new.err
    new_fingerprint = command.record()["experiments"][1]["fingerprint"]
    shop.with_name("fixed").touch()
    fixed = command.run(*known, "--at", AT)
    assert fixed.code == 1, fixed.out + fixed.err
    assert f"unpin: orders[{AT}]" in fixed.out
    mark = new_fingerprint
    pins.write_text(
        f'[[pin]]\nfingerprint = "{mark}"\nreason = "known"\ndate = 2026-11-30\n', encoding="utf-8"
    )
    unpin = command.run(*known, "--at", f"order.scan.before=kill / {AT}")
    assert unpin.code == 1, unpin.out + unpin.err
    assert f"unpin: {mark}" in unpin.out
    assert command.record()["pins"][0]["state"] == "fixed"
    elsewhere = command.run(*known, "--at", AT)
    assert elsewhere.code == 0, elsewhere.out + elsewhere.err
    assert command.record()["pins"][0]["state"] == "not_run"
    missing = command.run("--pins", "nowhere.toml")
    assert missing.code == 2
    assert "no pins file" in missing.err


def test_schedule_of_several_crashes_is_shrunk(command: Command, shop: Path) -> None:
    """The record has the minimal schedule and says how it was found."""
    long = f"order.scan.before#1=kill / {AT}"
    assert command.run("--scenarios", str(shop), "--at", long).code == 1
    (folder,) = (command.out / "latest" / "failures").iterdir()
    record = json.loads((folder / "failure.json").read_text(encoding="utf-8"))
    assert record["schedule"] == long
    assert record["minimal"]["schedule"] == AT
    assert record["minimal"]["steps"] == [{"schedule": AT, "verdict": "broken", "taken": True}]


def test_shell_on_the_crash_image(command: Command, shop: Path) -> None:
    """`repro --shell` starts the worker by hand on a copy of the crash image."""
    command.run("--scenarios", str(shop), "--at", AT)
    (folder,) = (command.out / "latest" / "failures").iterdir()
    image = folder / "images" / "1-end" / "worker"
    assert list(image.iterdir()) == []
    script = shop.with_name("shell")
    script.write_text(
        f"#!/bin/sh\nset -e\n{sys.executable} run_worker.py\ncat worker/done.txt world/*.ndjson\n",
        encoding="utf-8",
    )
    script.chmod(0o755)
    shell = subprocess.run(
        [sys.executable, "-m", "harness", "repro", "--shell", folder],
        cwd=ROOT,
        env=os.environ | {"SHELL": str(script)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert shell.returncode == 0, shell.stderr
    assert "o1\no2\n" in shell.stdout
    assert shell.stdout.count('"key": "o1"') == 2
    assert list(image.iterdir()) == []


def test_unknown_report_is_a_usage_error(command: Command) -> None:
    """An unknown name carries the nearest known one."""
    ran = command.run("reference", "--report", "htlm")
    assert ran.code == 2
    assert "'html'" in ran.err
    assert not command.out.exists()


def test_github_actions_gets_annotations_and_a_summary(
    command: Command, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In GitHub Actions the annotations are printed and the summary page is written."""
    summary = shop.with_name("summary")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    ran = command.run("--scenarios", str(shop), "--at", AT)
    assert "::error file=" in ran.out
    assert "not as pinned" in summary.read_text(encoding="utf-8")


def test_secrets_and_places_are_masked(
    command: Command, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Home directories and values that look like secrets are not in any report."""
    monkeypatch.setenv("SHOP_API_KEY", "k3y-of-the-shop")
    monkeypatch.setenv("HOME", str(command.out.parent))
    text = shop.read_text(encoding="utf-8")
    shop.write_text(
        text.replace(
            "def worker(site):",
            "def worker(site):\n    import os\n    print(os.environ['SHOP_API_KEY'], __file__)",
        ),
        encoding="utf-8",
    )
    command.run("--scenarios", str(shop), "--at", AT, "--report", "html,issue,junit,markdown")
    (folder,) = (command.out / "latest" / "failures").iterdir()
    record = json.loads((folder / "failure.json").read_text(encoding="utf-8"))
    assert record["incarnations"][0]["output"] == "<masked> ~/shop/shop.py\n"
    for path in (*folder.glob("*.*"), *(command.out / "latest").glob("*.*")):
        assert "k3y-of-the-shop" not in path.read_text(encoding="utf-8"), path
    assert command("repro", str(folder)).code == 1


def test_pages_are_one_file_and_need_no_network(command: Command, shop: Path) -> None:
    """A page is one file that loads nothing else."""
    command.run("--scenarios", str(shop), "--at", AT)
    pages = list((command.out / "latest").rglob("report.html"))
    assert len(pages) == 2
    for page in pages:
        text = page.read_text(encoding="utf-8")
        parser = _Counter()
        parser.feed(text)
        assert not {"link", "img", "iframe", "object", "base", "form"} & set(parser.tags)
        assert "default-src &#39;none&#39;" in text
        assert "://" not in text
