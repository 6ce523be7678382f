"""The capabilities at every moment, with services outside of every contract."""

from __future__ import annotations

import hashlib
import io
import random
import zipfile
from functools import cache, partial
from typing import TYPE_CHECKING

from faker import Faker

from harness.model.workload import Command, Workload
from harness.oracles.mailbox.artifacts import OneVersion
from harness.world.services.file_server import FileServer, SourceFile
from harness.world.services.receiver import Receiver
from harness.world.services.render_service import RenderService
from harness.world.wire_faults import Fault
from scenarios.capability_rules import asks, capability_scenario, is_temporary, oracles_for
from scenarios.children import CHILD, SECOND_LIFE
from scenarios.reference import compute
from scenarios.reference_books import ARTIFACTS

if TYPE_CHECKING:
    from pathlib import Path

    from harness.scenario import Scenario

BIG, BIG_BYTES = "big.bin", 150_000


def content(name: str, size: int) -> bytes:
    """Return bytes that are the same for everyone who asks for this name and size."""
    block = hashlib.sha512(name.encode()).digest()
    return (block * (size // len(block) + 1))[:size]


def archive_of(files: dict[str, bytes]) -> bytes:
    """Return a ZIP archive."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as made:
        for name, data in files.items():
            made.writestr(zipfile.ZipInfo(name), data)
    return held.getvalue()


AROUND = (
    "attempt.start.after",
    "capability.run.after",
    "checkpoint.save.before",
    "checkpoint.save.after",
    "recovery.decide.before",
    "recovery.decide.after",
    "result.commit.before",
    "result.commit.after",
)
"""Where every capability is struck, besides its own points. What lies further off is the same for
all of them, and is struck in the scenario `reference`; the crash matrix of all points is a test."""

RENDER_POINTS = (
    "render.request.before",
    "render.create.before",
    "render.create.after",
    "render.query.before",
)
NOTIFY_POINTS = ("notify.send.before", "notify.send.after")
TRANSFER_POINTS = (
    "transfer.request.before",
    "transfer.offset.before",
    "transfer.publish.before",
    "artifact.extend.before",
    "artifact.extend.mid",
    "artifact.extend.after",
    "artifact.rename.before",
    "artifact.rename.after",
    "directory.sync.after",
)
UNPACK_POINTS = (
    "unpack.entry.after",
    "tree.create.after",
    "tree.rename.before",
    "tree.rename.after",
)

TREE = {"a.txt": b"alpha", "sub/b.txt": b"beta" * 500, "sub/deep/c.txt": b""}
EVIL = {"a.txt": b"a", "../../../escaped.txt": b"out"}
SOURCES = {
    BIG: SourceFile((content(BIG, BIG_BYTES),)),
    "tree.zip": SourceFile((archive_of(TREE),)),
    "evil.zip": SourceFile((archive_of(EVIL),)),
}


def render(command_id: str) -> Command:
    """Return a command for a job."""
    return asks(command_id, "render", {"spec": {"id": command_id}})


def notify(command_id: str, text: str = "hello") -> Command:
    """Return a command for a notification."""
    return asks(command_id, "notify", {"channel": command_id, "text": text})


def child(command_id: str, code: int = 0) -> Command:
    """Return a command for a child process."""
    argv = ["/bin/sh", "-c", CHILD, "child", command_id, "done", str(code)]
    return asks(command_id, "command", {"argv": argv})


def compute_source(command_id: str) -> Command:
    """Return a command for work on a file of the file server."""
    return asks(command_id, "compute", {"source": "seed.txt", "rounds": 4})


def transfer(command_id: str, name: str = BIG) -> Command:
    """Return a command for a transfer."""
    return asks(command_id, "transfer", {"name": name})


def unpack(command_id: str, archive: str = "tree.zip") -> Command:
    """Return a command to unpack an archive."""
    return asks(command_id, "unpack", {"archive": archive})


@cache
def fresh(seed: int) -> Command:
    """Draw the fresh command; making a Faker takes longer than an incarnation."""
    fake = Faker()
    fake.seed_instance(seed)
    return compute("fresh", fake)


def offers(*commands: Command) -> partial[Workload]:
    """Return the drawing of a workload of given commands, one of them delivered twice."""
    return partial(_drawn, commands)


def _drawn(commands: tuple[Command, ...], seed: int) -> Workload:
    twice = random.Random(seed).choice([each.command_id for each in commands])
    return Workload(commands, fresh=fresh(seed), twice=frozenset({twice}))


def render_service(*, idempotent: bool, lookup: bool, late: int = 0) -> partial[RenderService]:
    """Return the maker of a render service with a contract."""
    return partial(
        RenderService,
        idempotent_create=idempotent,
        lookup=lookup,
        visible_after=late,
        polls_to_finish=1,
        fails=frozenset({"r2"}),
    )


def render_scenario(name: str, *, idempotent: bool, lookup: bool, late: int = 0) -> Scenario:
    """Return the scenario of a render service with a contract."""
    service = render_service(idempotent=idempotent, lookup=lookup, late=late)
    both = idempotent and lookup and not late
    # The job of r2 fails; once is enough.
    commands = offers(render("r1"), render("r2")) if both else offers(render("r1"))
    return capability_scenario(
        f"render-{name}", commands, (service,), strike=(*AROUND, *RENDER_POINTS)
    )


RENDERS = (
    render_scenario("idempotent", idempotent=True, lookup=False),
    render_scenario("lookup", idempotent=False, lookup=True),
    render_scenario("both", idempotent=True, lookup=True),
    render_scenario("neither", idempotent=False, lookup=False),
    render_scenario("late", idempotent=False, lookup=True, late=2),
    render_scenario("late-idempotent", idempotent=True, lookup=True, late=9),
)

NOTIFIES = tuple(
    capability_scenario(
        f"notify-{name}",
        offers(notify("n1"), notify("n2")),
        (partial(Receiver, honours_keys=honours, faults=(Fault("reply_lost", "notify", "n2"),)),),
        strike=(*AROUND, *NOTIFY_POINTS),
    )
    for name, honours in (("keys", True), ("no-keys", False))
)

NO_KEYS = partial(Receiver, honours_keys=False)

FILES = partial(FileServer, SOURCES, cut={BIG: (1_000_000, 20_000, 0)})
BIG_FILE = {BIG: content(BIG, BIG_BYTES)}

TRANSFER = capability_scenario(
    "transfer",
    offers(transfer("t1")),
    (FILES,),
    {"t1": BIG_FILE},
    strike=(*AROUND, *TRANSFER_POINTS),
)


def flip_a_bit(worker_dir: Path, incarnation: int) -> None:
    """Flip a bit of every temporary file, before the second life."""
    artifacts = worker_dir / "files" / "artifacts"
    for path in artifacts.rglob("*.tmp") if incarnation == SECOND_LIFE else ():
        data = bytearray(path.read_bytes())
        if data:
            data[0] ^= 1
            path.write_bytes(data)


TRANSFER_DAMAGED = capability_scenario(
    "transfer-damaged",
    offers(transfer("t1")),
    (FILES,),
    {"t1": BIG_FILE},
    between=flip_a_bit,
    strike=("transfer.request.before", "transfer.offset.before", "transfer.publish.before"),
)

VERSIONS = tuple(content(f"{BIG} {n}", BIG_BYTES - n) for n in range(2))
TRANSFER_CHANGING = capability_scenario(
    "transfer-changing",
    offers(transfer("t1")),
    (partial(FileServer, {BIG: SourceFile(VERSIONS, change_after=2)}),),
    strike=(*AROUND, "transfer.request.before", "transfer.offset.before"),
    oracles=oracles_for(
        {},
        files=(
            OneVersion(
                ARTIFACTS,
                frozenset(hashlib.sha256(each).hexdigest() for each in VERSIONS),
                is_temporary,
            ),
        ),
    ),
)

SEEDS = (b"one seed", b"another seed")
CHANGING_SEED = partial(FileServer, {"seed.txt": SourceFile(SEEDS, change_after=1)})
COMPUTE_CHANGING = capability_scenario(
    "compute-changing",
    offers(compute_source("c1")),
    (CHANGING_SEED,),
    strike=(*AROUND, "compute.half.after"),
)

PUBLISHED_TREE = {f"tree/{name}": data for name, data in TREE.items()}
UNPACK = capability_scenario(
    "unpack",
    offers(unpack("u1"), unpack("u2", "evil.zip")),
    (FILES,),
    {"u1": PUBLISHED_TREE},
    strike=(*AROUND, *UNPACK_POINTS),
)

EVERY = capability_scenario(
    "capabilities",
    offers(render("r1"), notify("n1"), child("p1"), transfer("t1"), unpack("u1")),
    (
        FILES,
        partial(RenderService, idempotent_create=False, lookup=True, polls_to_finish=1),
        partial(Receiver, honours_keys=True),
    ),
    {"t1": BIG_FILE, "u1": PUBLISHED_TREE},
    strike=("capability.run.after", "recovery.decide.after", "result.commit.after"),
)
