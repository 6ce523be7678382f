"""Lines of JSON of which each has a checksum that goes over all lines before it as well.

So a line that was altered is found, and so is one that was taken out, put in or moved.
"""

from __future__ import annotations

import json
import re
import zlib
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.model.canonical_json import Json

_ENCODER = json.JSONEncoder(separators=(",", ":"))  # with ASCII alone, lone surrogates survive

_SEAL = re.compile(rb"(?P<body>\{.+),\"sum\":\"(?P<sum>[0-9a-f]{8})\"\}", re.DOTALL)


class AlteredLineError(ValueError):
    """A line is not what was written, or not where."""


def seal(value: Mapping[str, Json], before: int = 0) -> tuple[bytes, int]:
    """Return the line of an object, with its line end, and the checksum up to there.

    Args:
        value: An object that has something in it.
        before: The checksum up to the line before; 0 for the first.
    """
    body = _ENCODER.encode(value).encode()[:-1]
    total = zlib.crc32(body, before)
    return b'%b,"sum":"%08x"}\n' % (body, total), total


def unseal(line: bytes, before: int = 0) -> tuple[dict[str, Json], int]:
    """Return the object of a line, and the checksum up to there.

    Args:
        line: The line, without its line end.
        before: The checksum up to the line before; 0 for the first.

    Raises:
        AlteredLineError: It is not what `seal` gave, or followed something else.
    """
    found = _SEAL.fullmatch(line)
    if found is None or zlib.crc32(found["body"], before) != int(found["sum"], 16):
        raise AlteredLineError
    return cast("dict[str, Json]", json.loads(found["body"] + b"}")), int(found["sum"], 16)
