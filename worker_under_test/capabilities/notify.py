"""``notify``: an effect that cannot be asked about afterwards (REC-12).

Payload ``{"channel": TEXT, "text": TEXT}``. Recovery policy: the same key again, or UNKNOWN.

Evidence: the key, and whether the receiver honours keys, saved before the call.

The window: once the key is saved the notification may have gone out. A receiver that honours keys
is sent it again under the same key and passes it on once; any other would pass on a second one, so
the attempt is UNKNOWN and waits for a person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.capabilities.asking import Asking, failed_itself, refused
from worker_under_test.domain.errors import DeliveryError, DomainError, Kind
from worker_under_test.domain.event import AttemptEvent, EventKind
from worker_under_test.domain.progress import Progress
from worker_under_test.domain.recovery import Decision, Proposal, RecoveryPolicy

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command
    from worker_under_test.domain.json_value import JsonObject
    from worker_under_test.domain.progress import Checkpoint
    from worker_under_test.ports.capability import ProgressReporter
    from worker_under_test.ports.clock import Clock
    from worker_under_test.ports.remote import Remote, Reply

PATH = "/notifications"
_OK, _ACCEPTED = 200, 202


class Notify:
    """The capability ``notify``, version 1.

    Args:
        remote: The services outside.
        clock: Where it waits before it sends again.
    """

    name = "notify"
    version = 1
    policy = RecoveryPolicy.KEY_OR_UNKNOWN

    def __init__(self, remote: Remote, clock: Clock) -> None:
        self._remote = remote
        self._asking = Asking(remote, clock)

    def recover(self, command: Command, checkpoint: Checkpoint | None) -> Proposal:  # noqa: ARG002
        """Start if nothing can have been sent; repeat where the key is honoured; else UNKNOWN."""
        if checkpoint is None:
            return Proposal(Decision.START, "no key is saved, so nothing was sent")
        saved = _saved(checkpoint)
        if saved is None:
            return Proposal(Decision.UNKNOWN, "the saved key cannot be understood")
        if self._may_repeat(honoured=saved[1]):
            return Proposal(Decision.REPEAT, "the receiver honours the key that is saved")
        return Proposal(Decision.UNKNOWN, "it may have been sent, and nobody can be asked")

    def _may_repeat(self, *, honoured: bool) -> bool:
        return honoured

    async def execute(self, command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
        """Send the notification, again only under a key that the receiver honours.

        Args:
            command: The command.
            reporter: Line to the attempt.

        Returns:
            ``succeeded`` once the receiver took it; ``unknown`` if it may have.

        Raises:
            DomainError: Of kind invalid, if the payload is not well formed.
        """
        body = _notification(command)
        saved = _saved(reporter.checkpoint)
        first = saved is None
        key, honoured = saved or await self._prepare(reporter)
        if not first and not self._may_repeat(honoured=honoured):
            return _unknown(key, "it may have been sent before")
        crash_point("notify.send.before", command=command.command_id)
        reply = await self._send(body, key, honoured=honoured)
        crash_point("notify.send.after", command=command.command_id)
        if reply is None:
            return _unknown(key, "no answer came, and a receiver without keys cannot be asked")
        if reply.status in (_OK, _ACCEPTED):
            return AttemptEvent(EventKind.SUCCEEDED, {"key": key})
        if not refused(reply):
            return _unknown(key, f"status {reply.status} does not say whether it was taken")
        reason = f"the receiver refused it with status {reply.status}"
        return AttemptEvent(EventKind.FAILED, {"key": key, "reason": reason})

    async def _prepare(self, reporter: ProgressReporter) -> tuple[str, bool]:
        reply = await self._asking.until_answered("GET", f"{PATH}/capabilities")
        can = reply.to_json() if reply.status == _OK else {}
        key, honoured = f"notify-{reporter.attempt_id}", can.get("honours_keys") is True
        evidence: JsonObject = {"key": key, "honours_keys": honoured}
        await reporter(Progress("send", "running", 0), evidence)
        return key, honoured

    async def _send(self, body: JsonObject, key: str, *, honoured: bool) -> Reply | None:
        headers = {"Idempotency-Key": key}
        if honoured:
            return await self._asking.until_answered("POST", PATH, body=body, headers=headers)
        try:
            reply = await self._remote.request("POST", PATH, body=body, headers=headers)
        except DeliveryError:
            return None
        return None if failed_itself(reply) else reply


def _saved(checkpoint: Checkpoint | None) -> tuple[str, bool] | None:
    match dict(checkpoint.evidence) if checkpoint else {}:
        case {"key": str(key), "honours_keys": bool(honoured)} if key:
            return key, honoured
    return None


def _unknown(key: str, reason: str) -> AttemptEvent:
    return AttemptEvent(EventKind.UNKNOWN, {"key": key, "reason": reason})


def _notification(command: Command) -> JsonObject:
    channel, text = command.payload.get("channel"), command.payload.get("text")
    if not isinstance(channel, str) or not channel:
        raise DomainError(Kind.INVALID, "channel is not a text")
    if not isinstance(text, str):
        raise DomainError(Kind.INVALID, "text is not a text")
    return {"channel": channel, "text": text}
