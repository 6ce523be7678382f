"""``transfer``: a large file from the file server, piece by piece (REC-04..REC-08).

Payload ``{"name": TEXT}`` and, if it is known, ``"sha256": TEXT``. Recovery policy: resume.

Evidence: the identity of the source (its strong entity tag) and its size; offsets that were
reached, each with the checksum of everything before it; before publishing, the checksum of all.
How the file is committed: pieces are added to a temporary path and forced to disk; when all are
there, it is renamed and the directory forced to disk; then the result's transaction names it.

The window: the file may be longer than the last offset saved, and after a power loss shorter or
wrong. So a resume reads what is on disk and goes on at the furthest offset whose checksum is right;
what lies behind is cut off; if none is right it starts again. The source is asked for the rest only
if it is still the same one; if it is another, everything is fetched anew: versions never mix. A
file that was published before the crash is adopted by its checksum.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from harness.points import crash_point
from worker_under_test.capabilities.asking import FIRST_WAIT_S, Asking
from worker_under_test.domain.artifact import Artifact, ArtifactSet, check_file_name
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.event import AttemptEvent, EventKind
from worker_under_test.domain.progress import Progress
from worker_under_test.domain.recovery import Decision, Proposal, RecoveryPolicy
from worker_under_test.ports.file_space import Place

if TYPE_CHECKING:
    from hashlib import _Hash

    from worker_under_test.domain.command import Command
    from worker_under_test.domain.json_value import JsonValue
    from worker_under_test.domain.progress import Checkpoint
    from worker_under_test.ports.capability import ProgressReporter
    from worker_under_test.ports.clock import Clock
    from worker_under_test.ports.file_space import FileSpace
    from worker_under_test.ports.remote import Remote, Reply

PIECE_BYTES = 1 << 16
"""How much is asked for at once."""

MARKS = 16
"""How many offsets are kept in the evidence, the latest."""

_OK, _PARTIAL, _UNSATISFIABLE = 200, 206, 416
_CONTENT_RANGE = re.compile(r"bytes (?:([0-9]{1,18})-[0-9]{1,18}|\*)/([0-9]{1,18})")
_LENGTH = re.compile(r"[0-9]{1,18}")

USELESS = 10
"""How many answers in a row may bring nothing, though they came whole."""

ANEW = 5
"""How often the file server may begin anew: one that gives only the beginning, of the same source
or of another each time, would never come to an end."""


@dataclass(frozen=True, slots=True)
class Transferred:
    """The evidence: which source, and how far.

    Attributes:
        etag: Identity of the source; empty before the first piece.
        size: Its size.
        marks: Offsets that were reached, each with the checksum of what lies before it.
        sha256: Checksum of all, once all is there.
    """

    etag: str = ""
    size: int = -1
    marks: tuple[tuple[int, str], ...] = ()
    sha256: str = ""

    @property
    def offset(self) -> int:
        """How far the record says it is."""
        return self.marks[-1][0] if self.marks else 0

    def to_json(self) -> dict[str, JsonValue]:
        """Return the evidence as it is saved."""
        marks: list[JsonValue] = [[offset, checksum] for offset, checksum in self.marks]
        return {"etag": self.etag, "size": self.size, "marks": marks, "sha256": self.sha256}

    @classmethod
    def read(cls, checkpoint: Checkpoint | None) -> Transferred:
        """Read saved evidence; what cannot be understood counts as none (REC-16)."""
        match dict(checkpoint.evidence) if checkpoint else {}:
            case {
                "etag": str(etag),
                "size": int(size),
                "marks": [*marks],
                "sha256": str(sha256),
            }:
                read = [tuple(mark) for mark in marks if isinstance(mark, list)]
                pairs = [(m[0], m[1]) for m in read if [type(v) for v in m] == [int, str]]
                whole = [(o, s) for o, s in pairs if isinstance(o, int) and isinstance(s, str)]
                return cls(etag, size, tuple(whole), sha256)
        return cls()


class Transfer:
    """The capability ``transfer``, version 1.

    Args:
        files: Where the file is made and published.
        remote: The file server.
        clock: Where it waits for the file server.
    """

    name = "transfer"
    version = 1
    policy = RecoveryPolicy.RESUME

    def __init__(self, files: FileSpace, remote: Remote, clock: Clock) -> None:
        self._files = files
        self._asking = Asking(remote, clock)
        self._clock = clock

    def recover(self, command: Command, checkpoint: Checkpoint | None) -> Proposal:  # noqa: ARG002
        """Resume: from what is verified on disk, which may be nothing (REC-04)."""
        return Proposal(Decision.RESUME, "what is on disk is verified, and the rest is fetched")

    async def execute(self, command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
        """Fetch the file, or the rest of it, and publish it.

        Args:
            command: The command.
            reporter: Line to the attempt; gets a checkpoint per piece.

        Returns:
            ``succeeded`` with the identity of the source and the checksum.

        Raises:
            DomainError: Of kind invalid, if the payload is not well formed; of another kind, if
                the file server does not have the file or it is not the one that is wanted.
            OSError: The file could not be written; nothing of it is left (FIL-09).
        """
        name, wanted = _read(command)
        files = ArtifactSet(command.command_id, reporter.attempt_id)
        try:
            got = Transferred.read(reporter.checkpoint)
            if not await self._is_published(files, name, got):
                got = await self._fetch(command, files, name, got, reporter)
                _require(got, wanted)
                crash_point("transfer.publish.before", command=command.command_id)
                await self._files.publish(files, [name])
        except (OSError, DomainError):
            await self._files.discard(files)
            raise
        return AttemptEvent(
            EventKind.SUCCEEDED,
            {"name": name, "etag": got.etag, "size": got.size, "sha256": got.sha256},
            (Artifact(name, f"{files.directory}/{name}", got.size, got.sha256),),
        )

    async def _is_published(self, files: ArtifactSet, name: str, got: Transferred) -> bool:
        return bool(got.sha256) and any(
            each.place is Place.FINAL and each.name == name and each.sha256 == got.sha256
            for each in await self._files.find(files)
        )

    async def _fetch(
        self,
        command: Command,
        files: ArtifactSet,
        name: str,
        got: Transferred,
        reporter: ProgressReporter,
    ) -> Transferred:
        got, summed = await self._verified(files, name, replace(got, sha256=""))
        useless = anew = 0
        while got.offset != got.size:
            crash_point("transfer.request.before", command=command.command_id)
            reply = await self._asking.until_answered(
                "GET", f"/files/{quote(name, safe='')}", headers=_headers(got)
            )
            was = got
            got, data = _taken(got, reply)
            if got.offset < was.offset or not was.etag:
                summed = hashlib.sha256()
            anew += got.offset < was.offset
            if anew > ANEW:
                raise DomainError(
                    Kind.INTERNAL, f"the file server began anew {ANEW} times and came to no end"
                )
            if not data and got.size != 0:
                useless += reply.whole
                if useless == USELESS:
                    raise DomainError(
                        Kind.INTERNAL, f"the file server gave no piece in {USELESS} answers"
                    )
                await self._clock.sleep(FIRST_WAIT_S)
                continue
            useless = 0
            if got.offset + len(data) > got.size:
                raise DomainError(
                    Kind.INTERNAL, "the file server gave more than the source has, as it says"
                )
            await self._files.extend_temp(files, name, got.offset, data)
            summed.update(data)
            mark = (got.offset + len(data), summed.hexdigest())
            got = replace(got, marks=(*got.marks, mark)[-MARKS:])
            crash_point("transfer.offset.before", command=command.command_id)
            await reporter(_progress(got), got.to_json())
        got = replace(got, sha256=summed.hexdigest())
        # Saved before the rename: a restart knows the published file by it (FIL-02).
        await reporter(Progress("publish", "running", 99), got.to_json())
        return got

    async def _verified(
        self, files: ArtifactSet, name: str, got: Transferred
    ) -> tuple[Transferred, _Hash]:
        """Go back to the furthest offset at which the file on disk is what was recorded."""
        summed = hashlib.sha256()
        best, best_sum = 0, summed.copy()
        offset = 0
        for mark, checksum in got.marks:
            while offset < mark:
                size = min(PIECE_BYTES, mark - offset)
                data = await self._files.read_temp(files, name, offset, size)
                if len(data) < size:
                    break
                summed.update(data)
                offset += size
            if offset != mark or summed.hexdigest() != checksum:
                break
            best, best_sum = offset, summed.copy()
        if not best or not got.etag:
            return Transferred(), hashlib.sha256()
        return replace(got, marks=tuple(m for m in got.marks if m[0] <= best)), best_sum


def _headers(got: Transferred) -> dict[str, str]:
    wanted = {"Range": f"bytes={got.offset}-{got.offset + PIECE_BYTES - 1}"}
    if got.etag:
        # The rest of this version, or all of the one that took its place (REC-08).
        wanted["If-Range"] = got.etag
    return wanted


def _taken(got: Transferred, reply: Reply) -> tuple[Transferred, bytes]:
    """Say what a reply brought, and to which place in which source it belongs."""
    etag = reply.headers.get("etag", "")
    found = _CONTENT_RANGE.fullmatch(reply.headers.get("content-range", ""))
    if reply.status == _OK and etag.startswith('"'):
        length = reply.headers.get("content-length", "")
        if not _LENGTH.fullmatch(length):
            raise DomainError(Kind.INTERNAL, "the file server does not tell the size of the source")
        return Transferred(etag, int(length)), reply.body
    if reply.status == _PARTIAL and found and etag.startswith('"'):
        start, size = int(found[1] or -1), int(found[2])
        if start == got.offset and (not got.etag or (etag, size) == (got.etag, got.size)):
            return replace(got, etag=etag, size=size), reply.body
        return Transferred(), b""
    if reply.status == _UNSATISFIABLE and found:
        if int(found[2]) == 0:
            return Transferred(etag, 0), b""
        return Transferred(), b""
    raise DomainError(
        Kind.NOT_FOUND, f"the file server does not give the source: status {reply.status}"
    )


def _require(got: Transferred, wanted: str) -> None:
    if wanted not in ("", got.sha256):
        raise DomainError(Kind.CONFLICT, f"the source is {got.sha256} and not the one wanted")


def _progress(got: Transferred) -> Progress:
    # The last percent stands for publishing.
    percent = 99 * got.offset // got.size if got.size else 99
    return Progress("fetch", "running", percent, got.offset, got.size)


def _read(command: Command) -> tuple[str, str]:
    name, wanted = command.payload.get("name"), command.payload.get("sha256", "")
    if not isinstance(name, str) or not isinstance(wanted, str):
        raise DomainError(Kind.INVALID, "name and sha256 are not texts")
    check_file_name(name)
    return name, wanted
