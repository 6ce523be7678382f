"""Masking: home directories, host names, secrets, text that is not Unicode, values that vary."""

from __future__ import annotations

import pytest

from harness.record.masking import MASK, Masking, StableMasking, looks_secret

MASKING = Masking(
    {"DB_PASSWORD": "correct horse", "API_KEY": "k3y-v4lue", "EDITOR": "vi", "TOKEN": "abc"},
    "/home/ada",
    "build-17",
)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("/home/ada/shop/worker.py", "~/shop/worker.py"),
        ("/home/adam/worker.py", "/home/adam/worker.py"),
        ("on build-17: no", "on <host>: no"),
        ("it said 'correct horse'", f"it said '{MASK}'"),
        ("postgresql://me:hunter22@db/x", f"postgresql://{MASK}@db/x"),
        ("password=hunter22 next", f"password={MASK} next"),
        ('{"client_secret": "s3cr3t"}', f'{{"client_secret": "{MASK}"}}'),
        ("Authorization: Bearer abcdefgh1234", f"Authorization: Bearer {MASK}"),
        ("ghp_0123456789abcdefABCDEF0123456789abcd", MASK),
        ("a -----BEGIN RSA PRIVATE KEY-----\nxx\n-----END RSA PRIVATE KEY----- b", f"a {MASK} b"),
        ("abc vi", "abc vi"),
        ("file-\udc80.txt", "file-\\udc80.txt"),
    ],
)
def test_text_is_masked(text: str, masked: str) -> None:
    """Paths and values that look like secrets are masked; short values are left alone."""
    assert MASKING.text(text) == masked


def test_everything_in_a_value_is_masked() -> None:
    """Keys and values, at any depth; numbers stay."""
    assert MASKING.everything({"/home/ada": [1, None, True, {"x": "build-17"}]}) == {
        "~": [1, None, True, {"x": "<host>"}]
    }


def test_names_that_say_secret() -> None:
    """An author is no authorisation."""
    assert looks_secret("GITHUB_TOKEN")
    assert looks_secret("aws_secret_access_key")
    assert not looks_secret("GIT_AUTHOR_NAME")
    assert not looks_secret("PYTHONHASHSEED")


def _cell(pid: str) -> str:
    cut = f'{{"pid":{pid},"token":"t","progress":{{"completed":0}}}}'[: 40 + len(pid) % 3]
    return f"{cut}… (235 characters, sha256 {pid.zfill(16)})"


def test_values_that_vary_from_machine_to_machine_are_masked() -> None:
    """Gallery: a process id, where a text was cut after it, and the sums over it say nothing."""
    stable = StableMasking(["pid", "boot_id"], "/home/me")
    assert stable.text('{"boot_id":"x-1","pid":77,"seq":3}') == (
        '{"boot_id":"varies","pid":"varies","seq":3}'
    )
    assert stable.text(_cell("7")) == stable.text(_cell("12345")) == '{"pid":"varies"…'
    assert stable.text("rows:" + "ab" * 32) == "rows:varies"
    assert stable.text("/home/me/x") == "~/x"
    plain = StableMasking([], "/home/me")
    for text in (_cell("7"), "rows:" + "ab" * 32, '{"pid":77}'):
        assert plain.text(text) == text
    assert stable.text("sha256:" + "ab" * 32) == "sha256:" + "ab" * 32
