"""The page in a real browser, on a real sweep."""

import json
import re
from importlib.resources import files as files_of_the_package
from statistics import mean, median, stdev

import numpy as np
import pytest
from many import HOSTILE, multiply
from tiny import tiny

from distpaml.catalogue import METHODS as CATALOGUE
from distpaml.report import write_report

METHODS = ("paml", "paml-pool", "uni", "lhs", "oracle")


@pytest.fixture(scope="module")
def page_file(sweep_made, search_made, tmp_path_factory):
    return write_report([sweep_made, search_made], tmp_path_factory.mktemp("report"))


def records(sweep, name):
    return [json.loads(line) for line in (sweep / "trials" / name / "records.jsonl").read_text().splitlines()]


def all_figures(page) -> list[str]:
    """Names of the figures, after every one was scrolled to."""
    for figure in page.query_selector_all("[data-figure]"):
        figure.scroll_into_view_if_needed()
        page.wait_for_timeout(15)
    return page.eval_on_selector_all("[data-figure]", "all => all.map((one) => one.dataset.figure)")


def empty_figures(page) -> list[str]:
    return page.eval_on_selector_all(
        "[data-figure]",
        """all => all.filter((one) => [...one.querySelectorAll('.plot')].some((plot) => !plot.querySelector('svg path'))
            || !one.querySelector('svg, table, .bars, pre, .tiles')).map((one) => one.dataset.figure)""",
    )


def open_numbers(page, figure):
    page.locator(f"[data-figure={figure}] details.numbers > summary").click()
    page.locator(f"[data-figure={figure}] details.numbers table").wait_for()


def chart_values(page, figure):
    return page.eval_on_selector_all(
        f"[data-figure={figure}] tbody tr",
        """rows => rows.map((row) => [...row.querySelectorAll('td span')].map(
            (cell) => [cell.dataset.value, cell.dataset.error]))""",
    )


def test_what_people_read_has_short_lines():
    """Scripts and styles are formatted by prettier (.prettierrc.json)."""
    files = [file for file in (files_of_the_package("distpaml.report") / "assets").iterdir() if file.is_file()]
    assert len(files) > 10
    for file in files:
        assert max(len(line) for line in file.read_text().splitlines()) <= 140, file.name


@pytest.mark.parametrize("width, scheme", [(1280, "light"), (1280, "dark"), (390, "light")])
def test_every_figure_is_drawn_and_nothing_leaves_the_file(visit, page_file, width, scheme):
    page = visit(page_file.as_uri(), width, scheme)
    page.get_by_role("button", name="cartpole", exact=True).click() if width > 700 else page.get_by_label(
        "Experiment"
    ).select_option(label="cartpole")
    figures = set(all_figures(page))
    assert figures >= {"curves-rmse", "curves-nll", "comparison-rmse", "comparison-nll", "needed", "latent", "chosen-0"}
    assert figures >= {"prediction-0", "prediction-3", "rollout-0", "parallel", "importance", "best", "stages", "sweep"}
    assert empty_figures(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#claims [data-verdict]").count() == 2 * 3 * 4
    assert page.requests == [page_file.as_uri()]
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, background[4:-1].split(","))) < 200) == (scheme == "dark")
    before = page.locator("[data-figure=curves-rmse] svg path.curve").first.evaluate("e => getComputedStyle(e).stroke")
    page.locator("#theme").click()
    after = page.locator("[data-figure=curves-rmse] svg path.curve").first.evaluate("e => getComputedStyle(e).stroke")
    assert before != after


def test_claims_that_no_run_can_test_are_one_sentence(visit, page_file):
    page = visit(page_file.as_uri())
    page.get_by_role("button", name=HOSTILE, exact=True).click()
    (sentence,) = page.locator("#claims p").all_inner_texts()
    assert "cannot be tested with these runs" in sentence and "at least 3 are needed" in sentence
    assert page.locator("#claims article").count() == 0


def test_numbers_on_the_page_are_those_of_the_records(visit, page_file, sweep_made):
    page = visit(page_file.as_uri())
    page.get_by_role("button", name="cartpole", exact=True).click()
    for measure, over, suffix in (("test outputs", "mean", ""), ("training outputs", "median", "_paper_median")):
        page.get_by_role("button", name=measure).click()
        page.get_by_role("button", name=over, exact=True).click()
        for kind in ("rmse", "nll"):
            figure = f"curves-{kind}"
            if not page.locator(f"[data-figure={figure}] tbody").count():
                open_numbers(page, figure)
            rows = chart_values(page, figure)
            key = kind + suffix
            for number, row in enumerate(rows):
                expected = []
                for method in METHODS:
                    seeds = (0,) if method == "oracle" else (0, 1, 2)
                    runs = [records(sweep_made, f"cartpole-{method}-seed{seed}") for seed in seeds]
                    if number < len(runs[0]):
                        values = [run[number][key] for run in runs]
                        expected.append((mean(values), stdev(values) / 3**0.5 if len(values) > 1 else None))
                assert len(row) == len(expected)
                for (value, error), (wanted, spread) in zip(row, expected, strict=True):
                    assert float(value) == pytest.approx(wanted, rel=2e-5)
                    assert (error is None) == (spread is None)
                    if spread is not None:
                        assert float(error) == pytest.approx(spread, rel=2e-5)


def test_differences_on_the_page_are_paired_and_those_of_the_records(visit, page_file, sweep_made):
    page = visit(page_file.as_uri())
    page.get_by_role("button", name="cartpole", exact=True).click()

    def areas(method):
        curves = [[r["nll"] for r in records(sweep_made, f"cartpole-{method}-seed{seed}")] for seed in (0, 1, 2)]
        return np.array([(0.5 * a + b + 0.5 * c) / 2.0 for a, b, c in curves])

    cells = page.locator("[data-figure=comparison-nll] tbody tr").nth(1).locator(".difference")
    for cell, baseline in zip(cells.all(), ("uni", "lhs"), strict=True):
        difference = areas("paml-pool") - areas(baseline)
        assert float(cell.get_attribute("data-mean")) == pytest.approx(difference.mean(), rel=2e-5)
        low, high = (float(cell.get_attribute(f"data-{end}")) for end in ("low", "high"))
        assert difference.min() - 1e-4 <= low < difference.mean() < high <= difference.max() + 1e-4


def test_tasks_needed_follow_the_level(visit, page_file, sweep_made):
    page = visit(page_file.as_uri())
    page.get_by_role("button", name="cartpole", exact=True).click()

    def needed(method, level):
        counts = []
        for seed in (0, 1, 2):
            curve = [record["rmse"] for record in records(sweep_made, f"cartpole-{method}-seed{seed}")]
            counts.append(next((k for k, error in enumerate(curve) if error <= level), np.inf))
        return median(counts)

    ends = [mean(records(sweep_made, f"cartpole-{m}-seed{s}")[-1]["rmse"] for s in (0, 1, 2)) for m in ("uni", "lhs")]
    levels = [min(ends)]
    slider = page.locator("[data-figure=needed] input[type=range]")
    for position in (None, 900):
        if position is not None:
            slider.evaluate(f"e => {{ e.value = {position}; e.dispatchEvent(new Event('input')); }}")
            means = np.mean(
                [
                    [[r["rmse"] for r in records(sweep_made, f"cartpole-{m}-seed{s}")] for s in (0, 1, 2)]
                    for m in METHODS[:4]
                ],
                axis=1,
            )
            levels.append(means.min() * (means.max() / means.min()) ** (position / 1000))
        open_numbers(page, "needed")
        shown = page.locator("[data-needed]").evaluate_all("all => all.map((one) => Number(one.dataset.needed))")
        assert shown == [needed(method, levels[-1]) for method in METHODS[:4]]


def test_filters_and_scales_change_the_figures(visit, page_file):
    page = visit(page_file.as_uri())
    page.get_by_role("button", name="cartpole", exact=True).click()
    lines = page.locator("[data-figure=curves-rmse] svg path.curve")
    assert lines.count() == 4
    dashes = {line.get_attribute("stroke-dasharray") for line in lines.all()}
    assert len(dashes) == 4  # told apart without colour
    chip = page.locator(".chip[data-group=uni]")
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    assert lines.count() == 3
    assert page.evaluate("document.activeElement.dataset.group") == "uni"  # focus stays where it was
    assert page.locator("[data-figure=comparison-rmse] tbody tr").count() == 4  # the oracle is one of them
    page.keyboard.press("Enter")
    assert lines.count() == 4
    before = lines.first.get_attribute("d")
    page.locator("[data-figure=curves-rmse] .switch input").uncheck()
    assert lines.first.get_attribute("d") != before
    thin = page.locator("[data-figure=curves-rmse] svg path[stroke-width='0.8']")
    assert thin.count() == 0
    page.get_by_label("every seed").check()
    assert thin.count() == 12


def test_hover_and_keys_name_points(visit, page_file):
    page = visit(page_file.as_uri())
    page.get_by_role("button", name="cartpole", exact=True).click()
    chart = page.locator("[data-figure=curves-rmse] svg.chart")
    chart.scroll_into_view_if_needed()
    box = chart.locator("path[transform]").first.bounding_box()
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    assert page.locator("#tip").inner_text().startswith("paml\n0 added: RMSE ")
    chart.focus()
    page.keyboard.press("ArrowRight")
    said = page.locator("#said").inner_text()
    assert said.startswith("paml, 1 added: RMSE ") and said.endswith("3 seeds")
    assert page.locator("#tip").is_visible()
    page.keyboard.press("ArrowDown")
    assert page.locator("#said").inner_text().startswith("paml-pool, 1 added")
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()
    unnamed = page.evaluate(
        """[...document.querySelectorAll('svg[role=img], button, input, select')].filter((one) =>
            !(one.getAttribute('aria-label') || one.textContent.trim() || one.closest('label'))).length"""
    )
    assert unnamed == 0


def test_one_can_walk_through_the_rounds(visit, page_file):
    page = visit(page_file.as_uri())
    page.get_by_role("button", name="cartpole", exact=True).click()
    latent = page.locator("[data-figure=latent]")
    latent.scroll_into_view_if_needed()
    assert latent.locator("ellipse").count() == 5  # three initial tasks, two chosen ones
    latent.locator("input[type=range]").evaluate("e => { e.value = 1; e.dispatchEvent(new Event('input')); }")
    page.wait_for_timeout(200)
    assert latent.locator("ellipse").count() == 4
    assert latent.locator("image").count() == 1  # the utility
    page.locator("#detail .pick select").first.select_option(label="uni, seed 0")
    latent.scroll_into_view_if_needed()
    assert latent.locator("ellipse").count() == 5
    page.locator("#detail .pick", has_text="Change of").locator("select").select_option(label="theta dot")
    assert "theta dot" in page.locator("[data-figure=prediction-0] svg").get_attribute("aria-label")


def test_what_comes_from_files_is_text(visit, page_file):
    page = visit(page_file.as_uri())
    page.get_by_role("button", name=HOSTILE.replace("_", " ")).click()
    assert page.locator("img[src=x]").count() == 0
    assert HOSTILE in page.locator(".eyebrow").inner_text()
    assert "alert(2)" in page.locator("[data-table=events]").inner_text()
    all_figures(page)
    assert page.locator("[data-figure=shots-rmse] svg path").count() > 3
    assert HOSTILE not in page_file.read_text()


def test_a_search_shows_its_best_configuration_ready_to_run(visit, page_file, search_made, tmp_path):
    from distpaml.config import ExperimentConfig

    page = visit(page_file.as_uri())
    samples = {}
    for folder in sorted((search_made / "trials").iterdir()):
        lines = (folder / "records.jsonl").read_text().splitlines()
        samples[folder.name.partition("-")[0]] = json.loads(lines[-1])["rmse"]
    best = min(samples, key=samples.get)
    assert f"{best} has the lowest rmse" in page.locator("#search .lead").inner_text()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("[data-figure=best] .copy").click()
    page.wait_for_function("document.querySelector('.copy').textContent === 'Copied'")
    text = page.locator("[data-figure=best] pre").inner_text()
    assert page.evaluate("navigator.clipboard.readText()") == text
    assert ExperimentConfig.from_yaml(text) == ExperimentConfig.from_yaml(
        search_made / "trials" / f"{best}-seed0" / "config.yaml"
    )
    shares = page.locator("[data-figure=importance] .bar-row b").all_inner_texts()
    assert len(shares) == 2 and sum(map(float, shares)) == pytest.approx(1.0, abs=0.02)


@pytest.mark.slow
def test_five_hundred_trials(visit, tmp_path):
    """16 rounds each: written in 30 s, under 15 MB, and quick to use."""
    from time import perf_counter

    from distpaml.runtime.run_experiment import run_to_end

    run_to_end(tiny("rounds=15"), tmp_path / "template")
    names = {
        f"{name}-{method}-seed{seed}": {"name": name, "method": method, "seed": seed}
        for name in "abcde"
        for method in METHODS[:4]
        for seed in range(25)
    }
    multiply(tmp_path / "template", tmp_path / "sweep" / "trials", names)
    begin = perf_counter()
    file = write_report([tmp_path / "sweep"], tmp_path / "report")
    seconds, size = perf_counter() - begin, file.stat().st_size / 1e6
    print(f"\n{len(names)} trials: written in {seconds:.1f} s, {size:.1f} MB")
    assert seconds < 30 and size < 15
    begin = perf_counter()
    page = visit(file.as_uri())
    page.locator("[data-figure=curves-rmse] svg path.curve").first.wait_for(state="attached")
    opened = perf_counter() - begin
    waits = page.evaluate(
        """() => ['uni', 'lhs', 'uni', 'lhs'].map((name) => { const begin = performance.now();
            document.querySelector(`.chip[data-group=${name}]`).click(); document.body.offsetHeight;
            return performance.now() - begin; })"""
    )
    print(f"opened in {opened:.1f} s, a filter takes {max(waits):.0f} ms")
    assert opened < 10 and max(waits) < 1500


def test_the_page_opens_with_the_best_method_and_says_what_to_expect(visit, page_file, sweep_made):
    page = visit(page_file.as_uri())
    page.get_by_role("button", name="cartpole", exact=True).click()
    runs = {
        m: [[r["rmse"] for r in records(sweep_made, f"cartpole-{m}-seed{s}")] for s in range(3)] for m in METHODS[:4]
    }
    areas = {m: mean(float(np.trapezoid(run)) / (len(run) - 1) for run in of) for m, of in runs.items()}
    ends = {m: mean(run[-1] for run in of) for m, of in runs.items()}
    (over, behind), (last, _) = (sorted(by, key=by.get)[:2] for by in (areas, ends))
    said = page.locator("h1").inner_text()
    assert re.match(rf"Lowest RMSE over the horizon: {over}, \S+, (\S+\s% below|level with) {behind}", said)
    assert f"At the end: {last}, " in said
    assert (
        page.locator("#detail label.pick select").first.evaluate("e => e.selectedOptions[0].text") == f"{over}, seed 0"
    )
    assert page.locator("[data-figure^=chosen]").first.get_attribute("data-figure") == f"chosen-{METHODS.index(over)}"
    expected = page.locator(".expect li").all_inner_texts()
    assert len(expected) == 5 and all(CATALOGUE[m].expect in text for m, text in zip(METHODS, expected, strict=True))
