"""Masking: home directories, host names, secrets, and text that is no Unicode."""

from __future__ import annotations

import pytest

from harness.record.masking import MASK, Masking, looks_secret

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
    """Issue 6: paths and values that look like secrets are masked; short values are left alone."""
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
