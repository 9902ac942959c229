"""Figures for papers: every one, with readable ticks, and the numbers of the records."""

from copy import deepcopy

import numpy as np
import pytest

from distpaml.report import figures, paper_figures
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


def _said(figure):
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def test_the_number_of_seeds_is_said_where_methods_differ_in_it(tree):
    (entry,) = (deepcopy(entry) for entry in tree["experiments"] if entry["name"] == "cartpole")
    names = [group["label"] for group in entry["groups"]]
    for group in entry["groups"]:
        group["seeds"] = [0, 1, 2]
    assert _said(figures.curves(entry, ("rmse", "nll"))) == names
    assert figures.overview([entry], ["rmse"]).axes[0].get_title() == "cartpole, 3 seeds"
    entry["groups"][0]["seeds"], entry["groups"][1]["seeds"] = [0], [0, 1, 2, 3, 4]
    said = _said(figures.curves(entry, ("rmse", "nll")))
    assert said[:3] == [f"{names[0]}, 1 seed", f"{names[1]}, 5 seeds", f"{names[2]}, 3 seeds"]
    assert figures.overview([entry], ["rmse"]).axes[0].get_title() == "cartpole, 1 to 5 seeds"


def test_the_legend_of_several_experiments_has_the_methods_of_all(tree):
    """An experiment that lacks a method, or has one more, may come first or last."""
    (first,) = (deepcopy(entry) for entry in tree["experiments"] if entry["name"] == "cartpole")
    second = deepcopy(first)
    labels = [group["label"] for group in first["groups"]]
    dropped, other = first["groups"].pop(0)["label"], second["groups"].pop()["label"]
    for make in (lambda parts: figures.overview(parts, ["rmse"]), paper_figures.divisors):
        said = _said(make([first, second]))
        assert len(said) == len(set(said)) and dropped in said
        assert set(said) <= set(labels)
    assert other in _said(figures.overview([first, second], ["rmse"]))


@pytest.mark.parametrize("low, high", [(0.115, 0.39), (0.06, 0.3), (0.02, 0.3), (0.18, 0.55)])
def test_an_axis_has_three_ticks_at_least(low, high):
    axis = figures.Figure().subplots()
    axis.plot([low, high])
    axis.set_ylim(low, high)
    figures._nonlinear(axis, "log")
    assert len([tick for tick in axis.get_yticks() if low <= tick <= high]) >= 3


def test_tasks_that_lie_together_have_one_label():
    places = np.array([[0.0, 0.0], [1.0, 1.0], [0.02, 0.03], [1.0, 0.2], [0.01, 0.0]])
    labels = dict(
        (text, tuple(place)) for text, place in paper_figures._labels(np.arange(1, 6), places, np.ptp(places, axis=0))
    )
    assert labels == {"1,3,5": (0.02, 0.03), "2": (1.0, 1.0), "4": (1.0, 0.2)}
    (text,) = (text for text, _ in paper_figures._labels(np.arange(1, 7), np.zeros((6, 2)), np.zeros(2)))
    assert text == "1,2,3,4,\n5,6"


def test_choices_are_shown_in_any_two_parameters(tree):
    (entry,) = (deepcopy(entry) for entry in tree["experiments"] if entry["name"] == "cartpole")
    assert figures.chosen(entry, (0, 2)) is None
    entry["parameters"].append({"name": "epsilon", "low": 0.5, "high": 5.0, "unit": None})
    for number, run in enumerate(entry["runs"]):
        run["tasks"] = [[*task, 100.0 + number] for task in run["tasks"]]
    axes = figures.chosen(entry, (0, 2)).axes
    assert axes[0].get_ylabel() == "epsilon"
    shown = np.concatenate([dots.get_offsets() for axis in axes for dots in axis.collections])
    assert shown[:, 0].max() < 10.0 and shown[:, 1].min() >= 100.0


def test_no_two_groups_of_a_grid_look_the_same():
    methods = ["paml"] * 20 + ["uni"] * 20 + ["oracle"] * 10 + ["lhs", "my_method"]
    styles = group_styles(methods)
    assert len({tuple(style.values()) for style in styles}) == len(methods)
    assert styles[50] == {"colour": "green", "dashes": "9 3 2 3", "marker": "diamond"}  # the only lhs keeps its own
    assert len(group_styles(["paml"] * 500)) == 500  # a large search; styles come back
