"""The page about an experiment, in a real browser."""

import json
import re

import pytest
from spring import declared, run

from distpaml import Experiment
from distpaml.catalogue import DEFAULT
from distpaml.report.__main__ import main

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Six observed tasks, one of them attached from outside the box, one too short; one failed, one out."""
    units = {"mass": "kg", "x": HOSTILE}
    experiment = Experiment(declared(name=HOSTILE, units=units), tmp_path_factory.mktemp("lab") / "lab")
    for _ in range(4):
        (task,) = experiment.ask()
        experiment.tell(task.id, run(task.descriptor))
    experiment.attach({"mass": 2.5, "stiffness": 1.0}, run({"mass": 2.5}))
    (task,) = experiment.ask()
    experiment.tell(task.id, run(task.descriptor, steps=4))
    (broken, _) = experiment.ask(2)
    experiment.fail(broken.id, HOSTILE)
    return experiment


@pytest.fixture(scope="module")
def page_file(lab, tmp_path_factory):
    out = tmp_path_factory.mktemp("page")
    before = lab.history()
    assert main([str(lab.directory), "--out", str(out)]) == 0
    assert lab.history() == before
    return out / "index.html"


@pytest.mark.parametrize("width, scheme", [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_every_figure_is_drawn_and_nothing_leaves_the_file(visit, page_file, width, scheme):
    page = visit(page_file.as_uri(), width, scheme)
    for plot in page.query_selector_all(".plot"):
        plot.scroll_into_view_if_needed()
        page.wait_for_timeout(15)
    figures = page.eval_on_selector_all("[data-figure]", "all => all.map((one) => one.dataset.figure)")
    assert {"next", "error", "coverage", "latent", "recording-1", "recording-5", "tasks"} <= set(figures)
    assert page.locator(".plot svg").count() == 3 + 6
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.requests == [page_file.as_uri()]
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, background[4:-1].split(","))) < 200) == (scheme == "dark")
    assert page.locator("[data-figure=tasks]").evaluate("e => e.offsetHeight") < 1200  # notes are readable on a phone


def test_the_page_says_what_the_experiment_says(visit, page_file, lab):
    page = visit(page_file.as_uri())
    curve, preview = lab.status().learning, lab.preview(3)
    assert [point.tasks for point in curve.points] == [3, 4, 5, 6]
    headline = page.locator("h1").inner_text()
    assert headline.lower() == f"{curve.change.worded()}.".lower()
    rows = page.locator("[data-figure=next] tbody tr").all_inner_texts()
    assert len(rows) == 3 and f"mass = {preview.tasks[0].descriptor['mass']:.6g} kg" in rows[0]
    why = page.locator("[data-figure=next] .caption").inner_text()
    assert f"Of {len(preview.utilities)} tasks" in why and f"most like it is task {preview.nearest}:" in why
    tasks = page.locator("[data-figure=tasks] tbody tr").all_inner_texts()
    assert "outside of what can be asked for" in tasks[4] and "attached" in tasks[4]
    assert "3 transitions can hardly teach anything" in tasks[5]
    assert HOSTILE in tasks[6] and "failed" in tasks[6] and "out" in tasks[7]
    assert f"{curve.errors[-1][0]:.3g}"[:5] in tasks[0]


def test_the_states_can_be_chosen(visit, page_file):
    page = visit(page_file.as_uri())
    path = "[data-figure=recording-1] svg path[fill=none]"
    page.locator("[data-figure=recording-1]").scroll_into_view_if_needed()
    before = page.locator(path).last.get_attribute("d")
    page.get_by_label("State").select_option(label="v")
    page.locator("[data-figure=recording-1]").scroll_into_view_if_needed()
    page.locator(path).last.wait_for(state="attached")
    assert page.locator(path).last.get_attribute("d") != before
    page.get_by_label("Colour").select_option(label="stiffness")
    assert "stiffness" in page.locator("[data-figure=latent] .ramp").inner_text()


@pytest.mark.parametrize("observed", [0, 1, 2])
def test_a_young_experiment_has_a_page_too(visit, tmp_path, observed):
    experiment = Experiment(declared(), tmp_path / "lab")
    for _ in range(observed):
        (task,) = experiment.ask()
        experiment.tell(task.id, run(task.descriptor))
    assert main([str(tmp_path / "lab")]) == 0
    page = visit((tmp_path / "lab" / "report" / "index.html").as_uri())
    assert page.locator("h1").inner_text() == f"{observed} of the 3 observed tasks that it takes to leave one out."
    why = page.locator("[data-figure=next] .caption").inner_text()
    assert (f"highest {DEFAULT.utility.replace('_', ' ')}" in why) if observed == 2 else ("spread evenly" in why)


def test_an_experiment_and_a_sweep_are_two_pages(lab, tmp_path, capsys):
    assert main([str(lab.directory), str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        "error: An experiment for ask and tell has a page of its own; name its directory alone.\n"
    )


def test_missing_points_are_announced_and_computed_once(tmp_path, capsys):
    experiment = Experiment(declared(), tmp_path / "lab")
    for mass in (1.0, 1.3, 1.6, 2.0):
        experiment.attach({"mass": mass, "stiffness": 1.0}, run({"mass": mass}))
    assert main([str(tmp_path / "lab")]) == 0
    said = capsys.readouterr()
    assert re.findall(r"a model of (\d) of 4 tasks", said.err) == ["3", "4"] and said.out.startswith("Report: ")
    assert main([str(tmp_path / "lab")]) == 0
    assert capsys.readouterr().err == ""
    assert len(json.loads((tmp_path / "lab" / "learning.json").read_text())["points"]) == 2
