"""Masking of what a worker takes from the machine, so that its report is the same everywhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness.record.masking import Masking

if TYPE_CHECKING:
    from collections.abc import Sequence

VARIES = "varies"

_ROWS = re.compile("rows:[0-9a-f]{64}")
_CUT = re.compile(r"… \([0-9]+ characters, sha256 [0-9a-f]+\)$")


class StableMasking(Masking):
    """Takes out the values of some keys of JSON, and the checksums that depend on them.

    Args:
        keys: The keys. Without one, every checksum stays.
        home: The home directory, or another one that is to be shown as such.
    """

    def __init__(self, keys: Sequence[str], home: str) -> None:
        super().__init__({}, home, "")
        self._values: re.Pattern[str] | None = None
        if keys:
            names = "|".join(map(re.escape, keys))
            self._values = re.compile(rf'(?P<key>"(?:{names})":)(?:[0-9]+|"[^"]*")')

    def text(self, value: str) -> str:
        """Return a text without what is masked and without what varies."""
        masked = super().text(value)
        if self._values is None:
            return masked
        if _ROWS.fullmatch(masked):
            return f"rows:{VARIES}"
        settled = self._values.sub(rf'\g<key>"{VARIES}"', masked)
        if settled != masked and _CUT.search(settled):
            # Where a text was cut depends on the length of what varies.
            return settled[: settled.rindex(VARIES)] + f'{VARIES}"…'
        return settled
