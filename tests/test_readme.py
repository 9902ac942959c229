"""What the README and the pages of the folders show is what happens.

The words after a block's language say what is done with it: a file's name means that it is written to that file,
`slow` that it takes more than ten seconds. `console` blocks are run in a folder with those files and compared. A
`python` block is run, and a `text` block right after it is its output. `shell-session` blocks go before the Python of
their page: see `tests/ask_tell/test_readme_ask_tell.py`.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from distpaml.bench import BENCHES
from distpaml.catalogue import METHODS as CATALOGUE
from distpaml.config import ExperimentConfig, shipped
from distpaml.config.load import worked_examples
from distpaml.select.methods import METHODS
from distpaml.select.utilities import UTILITIES
from distpaml.sweep.load import shipped_sweeps

ROOT = Path(__file__).parent.parent
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("cluster/*.md"), *ROOT.glob("distpaml/**/README.md")])
}
OWN_TESTS = {"distpaml/domains/README.md", "distpaml/ask_tell/README.md"}
"""Pages whose examples need more than an empty folder."""
README = PAGES["README.md"]
BLOCK = re.compile(r"^```(\w+)([^\n`]*)\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def blocks(page, language):
    """(words after the language, text, text of the output after it) of every block."""
    return [(words.split(), text, output) for kind, words, text, output in BLOCK.findall(page) if kind == language]


def files(page):
    return {word: text for kind, words, text, _ in BLOCK.findall(page) for word in words.split() if "." in word}


def commands():
    for name in PAGES.keys() - OWN_TESTS:
        for _, text, _ in blocks(PAGES[name], "console"):
            for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
                yield pytest.param(name, command, output, id=f"{name}: {command}")


def scripts():
    for name in PAGES.keys() - OWN_TESTS:
        for i, (words, text, output) in enumerate(blocks(PAGES[name], "python")):
            if not any("." in word for word in words):
                marks = [pytest.mark.slow] if "slow" in words else []
                yield pytest.param(text, output, id=f"{name}-{i}", marks=marks)


@pytest.mark.parametrize("page, command, output", sorted(commands(), key=lambda p: p.id))
def test_console_examples(tmp_path, page, command, output):
    for name, text in files(PAGES[page]).items():
        (tmp_path / name).write_text(text)
    line = re.sub(r"^python ", f"{sys.executable} ", command)
    done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout + done.stderr == output


@pytest.mark.parametrize("script, output", sorted(scripts(), key=lambda p: p.id))
def test_python_examples(tmp_path, script, output):
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert not output or done.stdout == output


def test_there_are_examples():
    assert len(list(commands())) >= 4
    assert len(list(scripts())) >= 3


def test_the_readme_is_one_page():
    assert len(README.splitlines()) <= 200


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", PAGES[page]):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        found = (ROOT / page).parent / path if path else ROOT / page
        assert found.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_files_in_backticks_exist(page):
    for named in re.findall(r"`((?:distpaml|tests|cluster|tune_configs)/[\w/.]+)`", PAGES[page]):
        assert (ROOT / named).exists(), named


def test_every_folder_of_the_package_that_has_a_page_is_linked():
    for page in PAGES:
        if page.startswith("distpaml/"):
            assert re.search(rf"\]\({page}|\]\({Path(page).parent}/?\)", README), page


def test_the_paper_is_named():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    (paper,) = citation["references"]
    package = (ROOT / "distpaml/__init__.py").read_text(encoding="utf-8")
    for text in (README, package):
        assert paper["title"] in text
        assert "2007.08949" in text
        assert all(author["family-names"] in text for author in paper["authors"])


def test_every_shipped_experiment_and_section_is_named():
    page = PAGES["distpaml/experiments/README.md"]
    assert all(f"`{name}`" in page for name in shipped())
    listed = dict(re.findall(r"^\| `(\w+)` \|.*\| (`.*`) \|$", page, re.MULTILINE))
    sections = {name: type(value).model_fields for name, value in ExperimentConfig() if hasattr(value, "model_dump")}
    assert listed.keys() == sections.keys()
    for name, keys in sections.items():
        assert set(re.findall(r"`(\w+)`", listed[name])) <= keys.keys()


def test_every_method_utility_sweep_and_benchmark_is_named():
    for page, names in {
        "README.md": METHODS,
        "distpaml/select/README.md": [*METHODS, *UTILITIES],
        "distpaml/bench/README.md": BENCHES,
    }.items():
        assert all(f"| `{name}` |" in PAGES[page] for name in names), page
    others = shipped_sweeps().keys() - shipped().keys()
    assert all(f"`{name}`" in PAGES["distpaml/sweep/README.md"] for name in others)


def test_the_robot_in_ten_lines_is_the_worked_one():
    ((_, shown, _),) = [block for block in blocks(README, "yaml") if block[1].startswith("domain:")]
    worked = yaml.safe_load(worked_examples()["two_link_arm"].read_text(encoding="utf-8"))
    assert yaml.safe_load(shown)["domain"] == worked["domain"]
    assert len(shown.splitlines()) <= 10
    assert all(f"`{name}`" in README for name in worked_examples())


def test_the_readme_says_what_to_expect_of_every_method():
    plain = README.replace("`", "")
    for method in CATALOGUE.values():
        assert f"| {method.name} | {method.expect}" in plain
