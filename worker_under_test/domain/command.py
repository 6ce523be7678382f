"""A command: what the coordinator asks, and how its text is checked."""

from __future__ import annotations

from dataclasses import dataclass

from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.json_value import JsonObject, digest, parse_object

MAX_BODY_CHARS = 1 << 20
"""Longest command body that is accepted, in characters."""

MAX_NAME_CHARS = 200
"""Longest command id or capability name, in characters."""

MAX_VERSION = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Command:
    """A well-formed command.

    Attributes:
        command_id: Its identity: a repeat with this id is the same action (INB-03).
        capability: Name of the capability that is to execute it.
        version: Version of that capability, from 1.
        payload: Input of the capability.
    """

    command_id: str
    capability: str
    version: int
    payload: JsonObject

    @property
    def digest(self) -> str:
        """SHA-256 of the content without the id; tells a repeat from a contradiction (INB-12)."""
        return digest(
            {
                "capability": self.capability,
                "version": self.version,
                "payload": dict(self.payload),
            }
        )


def parse_command(text: str) -> Command:
    """Check the text of a command.

    Args:
        text: The body as it was delivered.

    Returns:
        The command.

    Raises:
        DomainError: Of kind invalid, if the text is not a well-formed command (INB-13).
    """
    if len(text) > MAX_BODY_CHARS:
        raise _malformed(f"its body is longer than {MAX_BODY_CHARS} characters")
    try:
        body = parse_object(text)
    except ValueError as error:
        raise _malformed("its body is not a JSON object") from error
    payload = body.get("payload")
    if not isinstance(payload, dict):
        raise _malformed("payload is not an object")
    version = body.get("version")
    if type(version) is not int or not 1 <= version <= MAX_VERSION:
        raise _malformed("version is not a positive integer")
    command = Command(
        command_id=_name(body, "command_id"),
        capability=_name(body, "capability"),
        version=version,
        payload=payload,
    )
    try:
        _ = command.digest
    except ValueError as error:
        raise _malformed("its payload cannot be written as JSON") from error
    return command


def _name(body: JsonObject, key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_NAME_CHARS:
        raise _malformed(f"{key} is not a name of 1 to {MAX_NAME_CHARS} characters")
    # Half of a surrogate pair is legal in JSON and cannot be stored or sent: refuse it here.
    if not value.isprintable():
        raise _malformed(f"{key} has characters that cannot be printed")
    return value


def _malformed(why: str) -> DomainError:
    return DomainError(Kind.INVALID, f"malformed command: {why}")
