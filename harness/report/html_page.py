"""Pages: Jinja templates with everything escaped, styles and script inside, no network."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from harness.report.escaping import block, plain, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOLDER = files("harness.report") / "templates"


def render(template: str, values: Mapping[str, object]) -> str:
    """Render a template.

    Args:
        template: Name of its file.
        values: What it shows. Every text is made safe and escaped, whatever the template does.
    """
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(_read),
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["block"] = block
    environment.filters["short"] = shortened
    style, script = _read("style.css"), _read("script.js")
    environment.globals["style"] = Markup(style)  # noqa: S704 - our own file
    environment.globals["script"] = Markup(script)  # noqa: S704 - our own file
    environment.globals["policy"] = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    return environment


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _shown(value: object) -> object:
    """Make what an expression gives safe; markup is ours, and only templates make it."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return plain(value)
    return value
