"""``unpack``: the files of a ZIP archive, all or none (ZIP-01..ZIP-07).

Payload ``{"archive": NAME}`` of a file of the file server, or ``{"input": NAME}`` of a file that
was put into the worker's ``inputs/``. Recovery policy: recompute.

Evidence: the checksum of the archive, saved before anything is written. How the tree is committed:
the archive is checked whole, in memory; its files are written to a temporary tree and forced to
disk; the tree is renamed and its directory forced to disk; then the result's transaction names the
files.

The window: a crash leaves a temporary tree of which nobody knows how much is there, or the
published one. The temporary tree is never gone on with: it is removed and made again. A published
one is compared with the archive and adopted if it is right. An archive that changed meanwhile is
refused.
"""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote

from harness.points import crash_point
from worker_under_test.capabilities.asking import Asking
from worker_under_test.domain.archive import Entry, Limits, read_archive
from worker_under_test.domain.artifact import Artifact, ArtifactSet, check_file_name
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.event import AttemptEvent, EventKind
from worker_under_test.domain.progress import Progress
from worker_under_test.domain.recovery import Decision, Proposal, RecoveryPolicy
from worker_under_test.ports.tree_space import TREE

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command
    from worker_under_test.domain.json_value import JsonValue
    from worker_under_test.domain.progress import Checkpoint
    from worker_under_test.ports.capability import ProgressReporter
    from worker_under_test.ports.clock import Clock
    from worker_under_test.ports.remote import Remote
    from worker_under_test.ports.tree_space import TreeSpace

_OK = 200


class Unpack:
    """The capability ``unpack``, version 1.

    Args:
        trees: Where the tree is made and published.
        remote: The file server.
        clock: Where it waits for the file server.
        limits: How much an archive may hold.
    """

    name = "unpack"
    version = 1
    policy = RecoveryPolicy.RECOMPUTE

    def __init__(
        self, trees: TreeSpace, remote: Remote, clock: Clock, limits: Limits | None = None
    ) -> None:
        self._trees = trees
        self._asking = Asking(remote, clock)
        self._limits = limits or Limits()

    def recover(self, command: Command, checkpoint: Checkpoint | None) -> Proposal:  # noqa: ARG002
        """Unpack again from the archive, or adopt what is published (ZIP-07)."""
        return Proposal(Decision.RECOMPUTE, "the archive is unpacked again, in whole")

    async def execute(self, command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
        """Unpack the archive.

        Args:
            command: The command.
            reporter: Line to the attempt.

        Returns:
            ``succeeded`` with the checksum of the archive, and each file.

        Raises:
            DomainError: The payload is not well formed, there is no such archive, or it is refused;
                nothing of it is left (ZIP-04).
            OSError: The files could not be written; nothing of them is left (FIL-09).
        """
        files = ArtifactSet(command.command_id, reporter.attempt_id)
        try:
            archive = await self._archive(command)
            identity = hashlib.sha256(archive).hexdigest()
            _must_be_the_same(identity, reporter.checkpoint)
            entries = read_archive(archive, self._limits)
            await reporter(Progress("unpack", "running", 1), {"archive": identity})
            if await self._trees.find(files) != _measured(entries):
                await self._make(command, files, entries)
        except (OSError, DomainError):
            await self._trees.discard(files)
            raise
        listed: list[JsonValue] = [entry.path for entry in entries]
        return AttemptEvent(
            EventKind.SUCCEEDED,
            {"archive": identity, "entries": listed},
            tuple(
                _artifact(files, entry.path, entry.data)
                for entry in entries
                if entry.data is not None
            ),
        )

    async def _make(self, command: Command, files: ArtifactSet, entries: list[Entry]) -> None:
        await self._trees.begin(files)
        for entry in entries:
            await self._trees.add(files, entry.path, entry.data)
            crash_point("unpack.entry.after", command=command.command_id, entry=entry.path)
        await self._trees.publish(files)

    async def _archive(self, command: Command) -> bytes:
        match dict(command.payload):
            case {"archive": str(name)}:
                check_file_name(name)
                return await self._fetched(name)
            case {"input": str(name)}:
                check_file_name(name)
                data = await self._trees.read_input(name, self._limits.archive_bytes)
                if data is None:
                    raise DomainError(Kind.NOT_FOUND, f"there is no input {name!r}")
                return data
        raise DomainError(Kind.INVALID, "neither archive nor input is a text")

    async def _fetched(self, name: str) -> bytes:
        reply = await self._asking.until_answered(
            "GET", f"/files/{quote(name, safe='')}", whole_up_to=self._limits.archive_bytes
        )
        if reply.status != _OK:
            raise DomainError(Kind.NOT_FOUND, f"no archive {name!r}: status {reply.status}")
        return reply.body


def _must_be_the_same(identity: str, checkpoint: Checkpoint | None) -> None:
    begun_with = checkpoint.evidence.get("archive") if checkpoint else None
    if begun_with is not None and begun_with != identity:
        raise DomainError(Kind.CONFLICT, "the archive is not the one that was begun with")


def _measured(entries: list[Entry]) -> dict[str, str]:
    """Return what `TreeSpace.find` says of the entries if they stand there whole."""
    found: dict[str, str] = {}
    for entry in entries:
        for parent in list(PurePosixPath(entry.path).parents)[:-1]:
            found[str(parent)] = ""
        found[entry.path] = "" if entry.data is None else hashlib.sha256(entry.data).hexdigest()
    return found


def _artifact(files: ArtifactSet, path: str, data: bytes) -> Artifact:
    name = f"{TREE}/{path}"
    return Artifact(name, f"{files.directory}/{name}", len(data), hashlib.sha256(data).hexdigest())
