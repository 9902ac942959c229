"""A small search on a real Ray: the objective is a mean over seeds, samples stop early, more can be added."""

import json
import shutil

import numpy as np
import pytest
from sweeps import SweepProcess, results, small

pytestmark = pytest.mark.slow
SEARCH = """
methods: [uni]
seeds: 2
search:
  algorithm: random
  samples: 3
  space:
    model.inducing: {low: 8, high: 40}
"""


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    folder = tmp_path_factory.mktemp("search")
    (folder / "mine.yaml").write_text(SEARCH)
    words = [word for word in small() if word != "quickstart" and not word.startswith("model.inducing")]
    sweep = SweepProcess(str(folder / "mine.yaml"), *words, "--out", "out", cwd=folder).wait()
    assert sweep.code == 0, sweep.err
    return folder / "out", sweep


def test_what_is_reported_is_the_mean_over_the_seeds(searched):
    folder, sweep = searched
    runs = results(folder)
    assert list(runs) == [f"sample{i:03d}-seed{seed}" for i in range(3) for seed in (0, 1)]
    for sample in ("sample000", "sample001", "sample002"):
        mean = np.mean([runs[f"{sample}-seed{seed}"][-1]["rmse"] for seed in (0, 1)])
        (line,) = [line for line in sweep.out.splitlines() if line.startswith(sample) and " 2/2 " in line]
        assert line.split()[3] == f"{mean:.4f}"


def test_more_samples_recompute_nothing(searched, tmp_path):
    folder = tmp_path / "out"
    shutil.copytree(searched[0], folder)
    before = results(folder)
    more = SweepProcess("--resume", str(folder), "search.samples=4", cwd=folder).wait()
    assert more.code == 0, more.err
    after = results(folder)
    assert after.keys() - before.keys() == {"sample003-seed0", "sample003-seed1"}
    assert "sample000" not in more.out.split("rmse")[0]
    assert "3 of 4 samples done; 1 left" in more.out


def test_a_search_ends_with_its_best_configuration(searched):
    folder, sweep = searched
    runs = results(folder)
    means = {f"sample{i:03d}": np.mean([runs[f"sample{i:03d}-seed{s}"][-1]["rmse"] for s in (0, 1)]) for i in range(3)}
    best = min(means, key=means.get)
    assert f"Best: {best}, rmse {means[best]:.4f}\n" in sweep.out
    assert "Run it: python -m distpaml.run cartpole method=uni model.inducing=" in sweep.out
    rows = [line.split("│")[2].strip() for line in sweep.out.splitlines() if line.startswith("│")]
    assert rows == sorted(means, key=means.get)
    assert "study" not in (sweep.out + sweep.err).lower()  # optuna's chatter


def test_asha_stops_bad_samples_early_for_good(tmp_path):
    (tmp_path / "mine.yaml").write_text(SEARCH)
    words = [word for word in small("rounds=4") if word != "quickstart" and not word.startswith("model.inducing")]
    words += ["search.scheduler=asha", "search.algorithm=optuna", "search.samples=6"]
    sweep = SweepProcess("mine.yaml", *words, "--out", "out", cwd=tmp_path).wait()
    assert sweep.code == 0, sweep.err
    lengths = {name: len(records) for name, records in results(tmp_path / "out").items()}
    assert len(lengths) == 12 and max(lengths.values()) == 5 and min(lengths.values()) < 5
    events = [json.loads(line)["event"] for line in (tmp_path / "out/events.jsonl").read_text().splitlines()]
    assert events.count("trial stopped") == sum(length < 5 for length in lengths.values()) / 2
    again = SweepProcess("--resume", "out", cwd=tmp_path).wait()
    assert again.code == 0 and {n: len(r) for n, r in results(tmp_path / "out").items()} == lengths
