"""One HTML file that holds everything: a tree of plain values (`distpaml.report.payload`), the styles and the scripts.

The page fetches nothing: its own security policy forbids it. Scripts and styles are allowed by their hashes, so text
from a run's files can never execute; the scripts insert it as text, never as markup.
"""

import html as escaping
import json
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from string import Template
from typing import Any

from distpaml.report.styles import css

FRAME = ("dom.js", "axes.js", "hover.js", "charts.js", "frame.js")
SCRIPTS = (
    *FRAME, "curves.js", "compare.js", "claims.js", "latent.js", "predictions.js", "run_detail.js", "search.js",
    "timings.js", "main.js",
)  # fmt: skip
EXPERIMENT_SCRIPTS = (*FRAME, "left_out.js", "ask_tell.js")
STYLES = ("theme.css", "layout.css", "figures.css", "media.css")


def html(tree: dict[str, Any], live: bool = False) -> str:
    """The page about runs and sweeps; a live page polls its own server, and no other."""
    names = [entry["name"] for entry in tree["experiments"]]
    title = f"{', '.join(names[:3])}{', …' if len(names) > 3 else ''} – distpaml" if names else "distpaml"
    return _page(tree, title, SCRIPTS, live)


def experiment_html(tree: dict[str, Any]) -> str:
    """The page about an experiment for ask and tell, whose tree is that of `distpaml.ask_tell.report`."""
    return _page(tree, f"{tree['name']} – distpaml", EXPERIMENT_SCRIPTS)


def _page(tree: dict[str, Any], title: str, scripts: Sequence[str], live: bool = False) -> str:
    style, script = css() + _joined(STYLES), f'"use strict";\n(() => {{\n{_joined(scripts)}}})();\n'
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        f"connect-src '{'self' if live else 'none'}'; base-uri 'none'; form-action 'none'"
    )
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


def _joined(names: Sequence[str]) -> str:
    return "".join(map(_asset, names))


@cache
def _asset(name: str) -> str:
    return (files("distpaml.report") / "assets" / name).read_text(encoding="utf-8")


def _hash(source: str) -> str:
    return f"'sha256-{b64encode(sha256(source.encode()).digest()).decode()}'"
