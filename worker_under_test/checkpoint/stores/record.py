"""The written form of a snapshot, with a checksum, and the way back."""

from __future__ import annotations

import hashlib
import json

from worker_under_test.checkpoint.errors import DamagedRecordError, InvalidSnapshotError
from worker_under_test.checkpoint.snapshot import Snapshot


def to_json(value: object) -> str:
    """Return the one JSON text of a value: keys sorted, no spaces, non-ASCII kept.

    Args:
        value: Strings, integers, lists and dicts of these.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def checksum(snapshot: Snapshot) -> str:
    """Return the SHA-256 over all five fields of a snapshot, in hexadecimal.

    Args:
        snapshot: A snapshot that `require_writable` lets pass.
    """
    facts = [
        snapshot.run_id,
        snapshot.seq,
        snapshot.status,
        list(snapshot.done),
        dict(snapshot.fields),
    ]
    return hashlib.sha256(to_json(facts).encode()).hexdigest()


def restore(
    run_id: str, *, seq: object, status: object, done: object, fields: object, digest: object
) -> Snapshot:
    """Rebuild a snapshot from parsed parts that may be damaged (STO-22).

    Args:
        run_id: The run that was asked for.
        seq: The stored number.
        status: The stored state.
        done: The stored list of finished steps.
        fields: The stored dict of fields.
        digest: The stored checksum.

    Returns:
        The snapshot as it was saved.

    Raises:
        DamagedRecordError: A part has the wrong type, or the whole does not fit its checksum.
    """
    if (
        not isinstance(seq, int)
        or not isinstance(status, str)
        or not isinstance(done, list)
        or not isinstance(fields, dict)
    ):
        raise DamagedRecordError(f"record of run {run_id!r}: a part has the wrong type")
    try:
        snapshot = Snapshot(run_id, seq, status, done, fields)
        fits = checksum(snapshot) == digest
    except (InvalidSnapshotError, UnicodeEncodeError) as error:
        raise DamagedRecordError(f"record of run {run_id!r}: {error}") from error
    if not fits:
        raise DamagedRecordError(f"record of run {run_id!r} does not fit its checksum")
    return snapshot


def parse(run_id: str, text: bytes) -> object:
    """Parse stored JSON that may be damaged.

    Args:
        run_id: The run that was asked for.
        text: The stored bytes.

    Returns:
        The value.

    Raises:
        DamagedRecordError: The bytes are not JSON in UTF-8.
    """
    try:
        value: object = json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise DamagedRecordError(f"record of run {run_id!r} is not JSON: {error}") from error
    return value
