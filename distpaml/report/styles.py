"""How groups of runs look, on the page and in the figures for papers: colour, dashes and marker."""

from collections import Counter
from collections.abc import Sequence

from distpaml.catalogue import METHODS

PALETTE = {
    "orange": ("#c8450c", "#ff8a4c"),
    "blue": ("#0b62a8", "#6db4f5"),
    "purple": ("#a03c8c", "#e08bd0"),
    "green": ("#0d7f5f", "#4fc9a0"),
    "grey": ("#3d3a35", "#cfccc4"),
    "ochre": ("#8a6a00", "#e3c04a"),
    "sky": ("#2b8fb8", "#7ed0ea"),
    "violet": ("#6b4fc4", "#b6a2ff"),
}
"""Colours on a light and on a dark background, distinguishable with red-green blindness."""
IN_TURN = [name for name in PALETTE if name != "grey"]
DASHES = ("", "9 3", "2 3", "9 3 2 3", "14 4")
MARKERS = ("circle", "square", "triangle", "diamond")
MATPLOTLIB_MARKERS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D", "cross": "x"}

Style = dict[str, str]


def group_styles(methods: Sequence[str]) -> list[Style]:
    """The styles of groups with these methods: the method's own for its only group; no two groups share one."""
    own: dict[str, Style] = {
        name: {"colour": info.colour, "dashes": info.dashes, "marker": info.marker}
        for name, info in METHODS.items()
        if Counter(methods)[name] == 1
    }
    styles = list[Style]()
    for number, method in enumerate(methods):
        fixed = method in METHODS and not METHODS[method].has_rounds
        every = _every(["grey"] if fixed else IN_TURN)
        free = (style for style in every if style not in styles and style not in own.values())
        styles.append(own.get(method) or next(free, every[number % len(every)]))
    return styles


def _every(colours: Sequence[str]) -> list[Style]:
    """All styles of these colours; the colour changes fastest, and dashes and marker with it."""
    return [
        {"colour": colour, "dashes": DASHES[(turn + c) % len(DASHES)], "marker": MARKERS[(turn + c) % len(MARKERS)]}
        for turn in range(len(DASHES) * len(MARKERS))
        for c, colour in enumerate(colours)
    ]


def css() -> str:
    """The palette as CSS variables (`var(--orange)`), for both themes."""
    light, dark = (" ".join(f"--{name}: {pair[theme]};" for name, pair in PALETTE.items()) for theme in (0, 1))
    return (
        f":root {{ {light} }}\n"
        f':root[data-theme="dark"] {{ {dark} }}\n'
        f'@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ {dark} }} }}\n'
    )


def matplotlib_style(style: Style) -> tuple[str, str | tuple[int, tuple[float, ...]], str]:
    """Colour, line style and marker for matplotlib, whose dashes are in units of the line's width."""
    lengths = tuple(float(length) / 1.5 for length in style["dashes"].split())
    return PALETTE[style["colour"]][0], (0, lengths) if lengths else "-", MATPLOTLIB_MARKERS[style["marker"]]
