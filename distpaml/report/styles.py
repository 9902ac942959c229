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
    """The styles of groups with these methods: the method's own for its only group, others in turn."""
    count, seen, styles = Counter(methods), Counter[str](), []
    for method in methods:
        info = METHODS.get(method)
        if info and count[method] == 1:
            styles.append({"colour": info.colour, "dashes": info.dashes, "marker": info.marker})
            continue
        place = seen[method] + (IN_TURN.index(info.colour) if info and info.colour in IN_TURN else 4)
        seen[method] += 1
        fixed = info is not None and not info.has_rounds
        colour = "grey" if fixed else IN_TURN[place % len(IN_TURN)]
        styles.append(
            {"colour": colour, "dashes": DASHES[place % len(DASHES)], "marker": MARKERS[place % len(MARKERS)]}
        )
    return styles


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
