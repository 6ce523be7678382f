"""``export``: a set of files, published whole (REC-04, FIL-08).

Payload ``{"name": TEXT, "parts": [{"name": TEXT, "text": TEXT}, ...]}``. Recovery policy: resume.

How the set is committed: each part is written to a temporary path in the directory of the set and
forced to disk; when all are there, each is renamed to its final path and the directory is forced to
disk; then the transaction of the result names the files. So a file at a final path is whole.

The window: a crash may leave any mixture of final, temporary and missing parts, and the checkpoint
may know of fewer or, after a power loss, of more than there are. Therefore a resume believes only
checksums of what is on disk, compared with the command: what is right is kept, the rest is written
again. The checkpoint records progress and is not consulted.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker_under_test.domain.artifact import Artifact, ArtifactSet, check_file_name
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.event import AttemptEvent, EventKind
from worker_under_test.domain.progress import Progress
from worker_under_test.domain.recovery import Decision, Proposal, RecoveryPolicy
from worker_under_test.ports.file_space import FoundFile, Place

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command
    from worker_under_test.domain.json_value import JsonValue
    from worker_under_test.domain.progress import Checkpoint
    from worker_under_test.ports.capability import ProgressReporter
    from worker_under_test.ports.file_space import FileSpace


@dataclass(frozen=True, slots=True)
class _Part:
    name: str
    data: bytes
    sha256: str

    def at(self, place: Place) -> FoundFile:
        """Return what `FileSpace.find` says of this part if it stands there whole."""
        return FoundFile(self.name, place, len(self.data), self.sha256)

    def to_json(self) -> dict[str, JsonValue]:
        return {"name": self.name, "size": len(self.data), "sha256": self.sha256}


class Export:
    """The capability ``export``, version 1.

    Args:
        files: Where artifacts are made and published.
    """

    name = "export"
    version = 1
    policy = RecoveryPolicy.RESUME

    def __init__(self, files: FileSpace) -> None:
        self._files = files

    def recover(self, command: Command, checkpoint: Checkpoint | None) -> Proposal:  # noqa: ARG002
        """Resume: what is on disk is verified, whatever the checkpoint says (REC-04)."""
        return Proposal(Decision.RESUME, "what is on disk is measured, what is right is kept")

    async def execute(self, command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
        """Make the set, or finish what an earlier life began.

        Args:
            command: The command.
            reporter: Line to the attempt; gets a checkpoint per part.

        Returns:
            ``succeeded`` with the parts and their checksums.

        Raises:
            DomainError: Of kind invalid, if the payload is not well formed.
            OSError: The files could not be written; nothing of the set is left (FIL-09).
        """
        name, parts = _read(command)
        files = ArtifactSet(command.command_id, reporter.attempt_id)
        try:
            staged = await self._stage(files, parts, reporter)
            await self._files.publish(files, staged)
        except OSError:
            await self._files.discard(files)
            raise
        return AttemptEvent(
            EventKind.SUCCEEDED,
            {"name": name, "parts": [part.to_json() for part in parts]},
            tuple(
                Artifact(part.name, f"{files.directory}/{part.name}", len(part.data), part.sha256)
                for part in parts
            ),
        )

    async def _stage(
        self, files: ArtifactSet, parts: list[_Part], reporter: ProgressReporter
    ) -> list[str]:
        """Bring each part to its temporary path unless it is published; return those staged."""
        found = await self._files.find(files)
        staged: list[str] = []
        for done, part in enumerate(parts, start=1):
            if part.at(Place.FINAL) not in found:
                if part.at(Place.TEMPORARY) in found:
                    await self._files.keep_temp(files, part.name)
                else:
                    await self._files.write_temp(files, part.name, part.data)
                staged.append(part.name)
            # The last percent stands for publishing.
            progress = Progress("write", "running", 99 * done // len(parts), done, len(parts))
            await reporter(progress, {"parts": [each.to_json() for each in parts[:done]]})
        return staged


def _read(command: Command) -> tuple[str, list[_Part]]:
    name, parts = command.payload.get("name"), command.payload.get("parts")
    if not isinstance(name, str) or not name:
        raise DomainError(Kind.INVALID, "name is not a text")
    if not isinstance(parts, list) or not parts:
        raise DomainError(Kind.INVALID, "parts is not a list of at least one part")
    read = [_read_part(part) for part in parts]
    if len({part.name for part in read}) < len(read):
        raise DomainError(Kind.INVALID, "two parts have one name")
    return name, read


def _read_part(value: JsonValue) -> _Part:
    name = value.get("name") if isinstance(value, dict) else None
    text = value.get("text") if isinstance(value, dict) else None
    if not isinstance(name, str) or not isinstance(text, str):
        raise DomainError(Kind.INVALID, "a part is not an object with the texts name and text")
    check_file_name(name)
    data = text.encode()
    return _Part(name, data, hashlib.sha256(data).hexdigest())
