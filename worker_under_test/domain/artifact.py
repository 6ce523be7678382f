"""Artifacts: the files of a command, their names and their places."""

from __future__ import annotations

from dataclasses import dataclass

from worker_under_test.domain.errors import DomainError, Kind

ARTIFACTS = "artifacts"
"""Directory of every set, relative to the file space."""

TEMPORARY_SUFFIX = ".tmp"
"""Ends every temporary name, so no part may be called so."""

MAX_FILE_NAME_BYTES = 100
"""Longest name of a part or of a set's directory; leaves room for the temporary suffix."""


def check_file_name(name: str) -> None:
    """Refuse a name that is not a plain file name (no way out of its directory, INV-12).

    Args:
        name: A part's name or a command id, from outside.

    Raises:
        DomainError: Of kind invalid.
    """
    if not name or not name.isprintable() or len(name.encode()) > MAX_FILE_NAME_BYTES:
        raise DomainError(
            Kind.INVALID, f"a file name has 1 to {MAX_FILE_NAME_BYTES} printable bytes"
        )
    if name.startswith(".") or "/" in name or "\\" in name:
        raise DomainError(Kind.INVALID, f"not a plain file name: {name!r}")
    if name.endswith(TEMPORARY_SUFFIX):
        raise DomainError(Kind.INVALID, f"{TEMPORARY_SUFFIX} is kept for temporary files: {name!r}")


@dataclass(frozen=True, slots=True)
class ArtifactSet:
    """The files of one command, made by its one attempt.

    Attributes:
        command_id: Names the directory of the files.
        attempt_id: Part of the temporary names, so that two attempts never share one (FIL-07).

    Raises:
        DomainError: Of kind invalid, if the command id cannot name a directory.
    """

    command_id: str
    attempt_id: str

    def __post_init__(self) -> None:
        check_file_name(self.command_id)

    @property
    def directory(self) -> str:
        """Where the set stands, relative to the file space."""
        return f"{ARTIFACTS}/{self.command_id}"

    def temporary_name(self, name: str) -> str:
        """Return the name that a part has until it is published.

        Args:
            name: Name of the part.
        """
        return f"{name}.{self.attempt_id}{TEMPORARY_SUFFIX}"


@dataclass(frozen=True, slots=True)
class Artifact:
    """A published file.

    Attributes:
        name: Name of the part.
        path: Where it is, relative to the file space.
        size: Its size in bytes.
        sha256: Its checksum, in hexadecimal.
    """

    name: str
    path: str
    size: int
    sha256: str
