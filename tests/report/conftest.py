"""A real sweep of tiny runs, made once for all test processes, and a real browser."""

import json
import shutil
from pathlib import Path

import pytest
from many import HOSTILE, SMALL
from once import once
from tiny import tiny

METHODS = ("paml", "paml-pool", "uni", "lhs")
SEEDS = (0, 1, 2)
EVENTS = [
    ("2026-11-16T08:00:00+00:00", "sweep started", None, "Trials begin."),
    (
        "2026-11-16T08:00:30+00:00",
        "trial failed",
        "cartpole-uni-seed1",
        f"{HOSTILE} </script><script>alert(2)</script>",
    ),
    ("2026-11-16T08:00:31+00:00", "trial retried", "cartpole-uni-seed1", "It goes on from round 1."),
    ("2026-11-16T08:02:00+00:00", "sweep finished", None, "All trials are finished."),
]


@pytest.fixture(scope="session")
def sweep_made(tmp_path_factory) -> Path:
    """A grid over methods and seeds, an oracle, and another experiment with a hostile name and few-shot scores."""
    from distpaml.runtime.run_experiment import run_to_end

    with once(tmp_path_factory, "sweep") as (folder, new):
        if new:
            trials = folder / "trials"
            for seed in SEEDS:
                for method in METHODS:
                    run_to_end(
                        tiny(f"method={method}", f"seed={seed}", *SMALL), trials / f"cartpole-{method}-seed{seed}"
                    )
            run_to_end(tiny("method=oracle", *SMALL), trials / "cartpole-oracle-seed0")
            for method in ("paml", "uni"):
                overrides = [*SMALL, f"method={method}", "evaluation.shots=[0, 5]", f"name={json.dumps(HOSTILE)}"]
                run_to_end(tiny(*overrides, experiment="cartpole_noisy"), trials / f"noisy-{method}-seed0")
            asked = {"name": "small", "experiments": ["cartpole"], "methods": list(METHODS), "seeds": list(SEEDS)}
            (folder / "sweep.yaml").write_text(json.dumps(asked))
            (folder / "lock").touch()
            (folder / "tensorboard" / "cartpole-uni-seed0").mkdir(parents=True)
            lines = (dict(zip(("time", "event", "trial", "message"), event, strict=True)) for event in EVENTS)
            (folder / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def sweep(sweep_made, tmp_path) -> Path:
    """A copy that a test may damage."""
    return shutil.copytree(sweep_made, tmp_path / "sweep")


@pytest.fixture(scope="session")
def search_made(tmp_path_factory) -> Path:
    """A search of nine samples with one seed each."""
    from distpaml.runtime.run_experiment import run_to_end

    with once(tmp_path_factory, "search") as (folder, new):
        if new:
            for number in range(9):
                values = f"model.inducing={15 + 5 * (number % 3)}", f"fit.evaluations={2 ** (1 + number % 4)}"
                config = tiny(*SMALL, *values, "method=lhs", "rounds=1", "name=search")
                run_to_end(config, folder / "trials" / f"sample{number:03d}-seed0")
            space = {
                "model.inducing": {"choices": [15, 20, 25]},
                "fit.evaluations": {"low": 2, "high": 16, "log": True},
            }
            search = {"space": space, "objective": "rmse", "mode": "min"}
            (folder / "sweep.yaml").write_text(json.dumps({"name": "found", "search": search}))
    return folder


@pytest.fixture(scope="session")
def chromium():
    """A headless Chromium."""
    from playwright.sync_api import Error, sync_playwright

    installed = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        try:
            browser = playwright.chromium.launch(executable_path=installed, args=flags)
        except Error as error:  # which fails in CI, as every skip does
            pytest.skip(f"There is no Chromium; apt-get install chromium, or playwright install chromium. {error}")
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium):
    """Open an address: a page whose console and requests are kept and must be clean in the end."""
    contexts, said, requests = [], [], []

    def visit(address: str, width: int = 1280, scheme: str = "light"):
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address)
        page.said, page.requests = said, requests
        return page

    yield visit
    for context in contexts:
        context.close()
    assert said == []
