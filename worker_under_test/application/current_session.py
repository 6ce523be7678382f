"""The session that requests are made under; attempts outlive it (SES-02)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_under_test.domain.errors import DomainError, Kind

if TYPE_CHECKING:
    from worker_under_test.domain.registration import Session


class CurrentSession:
    """Holds the session; every request reads it at the moment it is made."""

    def __init__(self) -> None:
        self._session: Session | None = None

    def renew(self, session: Session) -> None:
        """Put a new session in the place of the old one.

        Args:
            session: The session just registered.
        """
        self._session = session

    @property
    def session(self) -> Session:
        """The session, once there is one.

        Raises:
            DomainError: Of kind internal, if no session was registered yet.
        """
        if self._session is None:
            raise DomainError(Kind.INTERNAL, "no session is registered")
        return self._session
