"""One HTML file that holds everything: the tree of `contents`, the style and the script.

Nothing is fetched: the page's own policy forbids it. Scripts and styles are allowed by their hashes, so that nothing
that comes from a file of a run could ever run; the script makes text of it, never markup.
"""

import html as escaping
import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from string import Template
from typing import Any

SCRIPTS = (
    "dom.js",
    "charts.js",
    "curves.js",
    "compare.js",
    "claims.js",
    "run_detail.js",
    "search.js",
    "timings.js",
    "main.js",
)


def html(tree: dict[str, Any], live: bool = False) -> str:
    """The page about `tree`; a live one asks its own server, and nobody else, for news."""
    style, script = _asset("style.css"), f'"use strict";\n(() => {{\n{"".join(map(_asset, SCRIPTS))}}})();\n'
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        f"connect-src '{'self' if live else 'none'}'; base-uri 'none'; form-action 'none'"
    )
    names = [entry["name"] for entry in tree["experiments"]]
    title = f"{', '.join(names[:3])}{', …' if len(names) > 3 else ''} – distpaml" if names else "distpaml"
    return Template(_asset("page.html")).substitute(
        live=" data-live" if live else "",
        policy=policy,
        title=escaping.escape(title),
        style=style,
        data=text(tree).replace("<", "\\u003c"),
        script=script,
    )


def text(tree: dict[str, Any]) -> str:
    """The tree as compact JSON."""
    return json.dumps(tree, separators=(",", ":"), allow_nan=False)


@cache
def _asset(name: str) -> str:
    return (files("distpaml.report") / "assets" / name).read_text(encoding="utf-8")


def _hash(source: str) -> str:
    return f"'sha256-{b64encode(sha256(source.encode()).digest()).decode()}'"
