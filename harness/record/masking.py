"""Masking: secrets, names of this machine, and values that vary from machine to machine."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.model.canonical_json import Json

MASK = "<masked>"
VARIES = "varies"

_SECRET_NAME = re.compile(
    r"secret|token|passw|passphrase|credential|api_?key|private_?key|access_?key|session_?key|auth(?!or)",
    re.IGNORECASE,
)
_SECRETS = (
    re.compile(r"(?<=://)[^\s/@:]+:[^\s/@]+(?=@)"),
    re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|sk-|AKIA|ASIA)[A-Za-z0-9_-]{12,}"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+"),
    re.compile(r"(?i)(?<=\bbearer )[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(
        r"(?i)(?<![a-z])(?:[a-z0-9_-]*(?:secret|token|passw(?:or)?d|api_?key|private_?key))"
        r"[\"']?\s*[=:]\s*[\"']?(?P<value>[^\s\"',;&]{4,})"
    ),
    re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
    ),
)
_SHORTEST_SECRET = 6
_SHORTEST_HOST = 4
_TEXTS_KEPT = 1 << 14

_ROWS = re.compile("rows:[0-9a-f]{64}")
_CUT = re.compile(r"… \([0-9]+ characters, sha256 [0-9a-f]+\)$")


class Masking:
    """Takes out home directories, host names and what looks like a secret.

    Args:
        environment: Environment variables; values of those that are named like a secret are
            masked wherever they stand.
        home: The home directory.
        host: The name of this machine.
    """

    def __init__(self, environment: Mapping[str, str], home: str, host: str) -> None:
        literal = {
            value: MASK
            for name, value in environment.items()
            if looks_secret(name) and len(value) >= _SHORTEST_SECRET
        }
        if home not in ("", "/"):
            literal[home.rstrip("/")] = "~"
        if len(host) >= _SHORTEST_HOST and host != "localhost":
            literal[host] = "<host>"
        self._literal = literal
        # The longest first: one value may be the beginning of another.
        texts = sorted(literal, key=len, reverse=True)
        whole = [rf"{re.escape(text)}(?![\w-])" for text in texts]
        self._pattern = re.compile("|".join(whole)) if texts else None
        # Records say the same words over and over.
        self._masked = lru_cache(_TEXTS_KEPT)(self._mask)

    @classmethod
    def of_this_machine(cls) -> Masking:
        """Return the masking for what is written here and now."""
        return cls(os.environ, str(Path("~").expanduser()), socket.gethostname())

    def text(self, value: str) -> str:
        """Return a text with everything masked, and with what is no Unicode written out."""
        return self._masked(value)

    def _mask(self, value: str) -> str:
        clean = value.encode("utf-8", "backslashreplace").decode("utf-8")
        if self._pattern is not None:
            clean = self._pattern.sub(lambda match: self._literal[match.group()], clean)
        for secret in _SECRETS:
            clean = secret.sub(_hide, clean)
        return clean

    def everything(self, value: Json) -> Json:
        """Return a JSON value with every text in it masked, keys too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(key): self.everything(inner) for key, inner in value.items()}
        if isinstance(value, Sequence):
            return [self.everything(inner) for inner in value]
        return value


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
        stable = self._values.sub(rf'\g<key>"{VARIES}"', masked)
        if stable != masked and _CUT.search(stable):
            # Where a text was cut depends on the length of what varies.
            return stable[: stable.rindex(VARIES)] + f'{VARIES}"…'
        return stable


def looks_secret(name: str) -> bool:
    """Tell whether a name, of an environment variable for example, says that it is secret."""
    return _SECRET_NAME.search(name) is not None


def _hide(match: re.Match[str]) -> str:
    if "value" in match.re.groupindex:
        start, end = match.span("value")
        begin = match.start()
        return match.group()[: start - begin] + MASK + match.group()[end - begin :]
    return MASK
