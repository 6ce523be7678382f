"""The errors: texts, identity, and what they are not."""

from __future__ import annotations

import copy
import pickle

import pytest

from worker_under_test.checkpoint import (
    ConflictingSnapshotError,
    DamagedRecordError,
    InvalidSnapshotError,
    NotFound,
    StaleSeq,
    StoreMissing,
)

SENTINELS: dict[type[Exception], str] = {
    NotFound: "编排进度快照不存在",
    StaleSeq: "编排进度快照序号回退",
    StoreMissing: "未装配存储,无法提交进度快照",
}
ALL = [*SENTINELS, InvalidSnapshotError, DamagedRecordError, ConflictingSnapshotError]


@pytest.mark.requirement("ERR-01", "ERR-02", "ERR-03")
@pytest.mark.parametrize(("kind", "text"), SENTINELS.items())
def test_texts_of_the_seed(kind: type[Exception], text: str) -> None:
    """The text is the one of the package, and a detail follows it."""
    assert str(kind()) == text
    assert str(kind("run 'r'")) == f"{text}: run 'r'"


@pytest.mark.requirement("ERR-04")
@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("other", ALL)
def test_none_is_another(kind: type[Exception], other: type[Exception]) -> None:
    """No error is a subclass of another one."""
    assert issubclass(kind, other) == (kind is other)


@pytest.mark.requirement("ERR-04")
@pytest.mark.parametrize("kind", ALL)
def test_identity_survives_wrapping(kind: type[Exception]) -> None:
    """Wrapped in another error, the cause is still exactly one of them."""

    def save() -> None:
        raise kind("run 'r'")

    def commit() -> None:
        try:
            save()
        except kind as error:
            raise OSError("while committing") from error

    with pytest.raises(OSError, match="while committing") as caught:
        commit()
    assert [one for one in ALL if isinstance(caught.value.__cause__, one)] == [kind]


@pytest.mark.requirement("ERR-04")
@pytest.mark.parametrize("kind", ALL)
def test_errors_cross_process_borders(kind: type[Exception]) -> None:
    """Pickled or copied, an error keeps kind and text."""
    error = kind("run 'r'")
    for same in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(same), str(same)) == (kind, str(error))
