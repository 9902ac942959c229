"""Figures for papers: every one, with readable ticks, and the numbers of the records."""

import numpy as np
import pytest

from distpaml.report import figures
from distpaml.report.collect import collect
from distpaml.report.payload import payload
from distpaml.report.styles import group_styles


@pytest.fixture(scope="module")
def tree(sweep_made):
    return payload(collect([sweep_made]))


def test_every_figure_is_written_twice_and_no_name_is_a_path(tree, tmp_path):
    written = figures.write_figures(tree, tmp_path / "figures")
    assert {path.parent for path in written} == {tmp_path / "figures"}
    names = {path.name for path in written if path.name.startswith("cartpole-")}
    parts = (
        "curves",
        "curves-paper",
        "coverage",
        "differences",
        "chosen",
        "stages",
        "latent",
        "predictions",
        "rollouts",
    )
    assert names == {f"cartpole-{part}.{suffix}" for part in parts for suffix in ("pdf", "png")}
    assert all(path.stat().st_size > 3000 for path in written)
    assert len(written) > len(names)  # the experiment with the hostile name has its own


def test_curves_are_the_means_of_the_records_and_ticks_are_plain_numbers(tree, sweep_made):
    (cartpole,) = (entry for entry in tree["experiments"] if entry["name"] == "cartpole")
    with figures.matplotlib.rc_context(figures.SETTINGS):
        figure = figures.curves(cartpole, ("rmse", "nll"))
        figure.canvas.draw()
    for axis, measure in zip(figure.axes, ("rmse", "nll"), strict=True):
        lines = {line.get_label(): line.get_ydata() for line in axis.get_lines()}
        runs = [run for run in collect([sweep_made]).runs if run.name.startswith("cartpole-lhs")]
        expected = np.mean([[getattr(record, measure) for record in run.records] for run in runs], axis=0)
        assert lines["lhs"] == pytest.approx(expected, rel=1e-5)
        labels = [label.get_text() for label in (*axis.get_yticklabels(), *axis.get_xticklabels())]
        assert len(labels) >= 4
        assert all(np.isfinite(float(label.replace("\u2212", "-"))) for label in labels)


def test_no_two_groups_of_a_grid_look_the_same():
    methods = ["paml"] * 20 + ["uni"] * 20 + ["oracle"] * 10 + ["lhs", "my_method"]
    styles = group_styles(methods)
    assert len({tuple(style.values()) for style in styles}) == len(methods)
    assert styles[50] == {"colour": "green", "dashes": "9 3 2 3", "marker": "diamond"}  # the only lhs keeps its own
    assert len(group_styles(["paml"] * 500)) == 500  # a large search; styles come back
