"""Asking a service until it answers (REC-11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_under_test.domain.errors import DeliveryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_under_test.domain.json_value import JsonObject
    from worker_under_test.ports.clock import Clock
    from worker_under_test.ports.remote import Remote, Reply

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0
_BAD_REQUEST, _SERVER_ERROR = 400, 500
NOT_IMPLEMENTED = 501


class Asking:
    """Repeats a request, with growing waits, until there is an answer.

    Only for requests that may be repeated: those without an effect, and those whose effect the
    other side ties to an identity in the request.

    Args:
        remote: The services outside.
        clock: Where it waits.
    """

    def __init__(self, remote: Remote, clock: Clock) -> None:
        self._remote = remote
        self._clock = clock

    async def until_answered(
        self,
        method: str,
        path: str,
        *,
        body: JsonObject | None = None,
        headers: Mapping[str, str] | None = None,
        whole_up_to: int | None = None,
    ) -> Reply:
        """Make a request until the service answers it.

        Args:
            method: The method.
            path: Path and query.
            body: Sent as JSON, if given.
            headers: Sent as they are.
            whole_up_to: If given, a body of no more bytes than this that was cut is no answer.

        Returns:
            An answer: a reply whose status does not say that the service itself failed.
        """
        wait_s = FIRST_WAIT_S
        while True:
            try:
                reply = await self._remote.request(method, path, body=body, headers=headers)
            except DeliveryError:
                pass
            else:
                cut = whole_up_to is not None and not reply.whole and len(reply.body) <= whole_up_to
                if not failed_itself(reply) and not cut:
                    return reply
            await self._clock.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)


def refused(reply: Reply) -> bool:
    """Tell whether the service says that it did not do it; any other answer may mean anything."""
    return _BAD_REQUEST <= reply.status < _SERVER_ERROR or reply.status == NOT_IMPLEMENTED


def failed_itself(reply: Reply) -> bool:
    """Tell whether the service failed, so that nobody knows what it did before."""
    return reply.status >= _SERVER_ERROR and reply.status != NOT_IMPLEMENTED
