"""One way to name things on the command line."""

import os
import re
import socket
import subprocess
import sys
import time
from importlib import import_module

import pytest
from tiny import SIZE

from distpaml import __version__
from distpaml.__main__ import ASK_TELL, COMMANDS, ELSEWHERE
from distpaml.config import ExperimentConfig, load, shipped
from distpaml.config.explain import explained
from distpaml.config.validation_errors import dotted_keys

LONG = "x" * 300
"""No file system takes such a name."""

ALONE = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}


def distpaml(*words, module="distpaml", **options):
    command = [sys.executable, "-m", module, *words]
    return subprocess.run(command, capture_output=True, text=True, **{"timeout": 60, "env": ALONE} | options)


@pytest.mark.parametrize("words", [["cartpole"], ["--config", "cartpole"], ["seed=3", "cartpole"]])
def test_a_config_is_a_positional_name_and_an_option(words, tmp_path):
    printed = distpaml("config", *words).stdout
    assert ExperimentConfig.from_yaml(printed).name == "cartpole"
    done = distpaml("run", *words, *SIZE, "rounds=0", "method=uni", "--out", str(tmp_path / "run"))
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "run" / "records.jsonl").exists()


def test_two_configs_are_one_too_many():
    done = distpaml("sweep", "quickstart", "--config", "paper")
    assert done.returncode == 2 and "There should be one config, but there are quickstart and paper" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_quick_and_says_what_it_was_asked(command):
    distpaml(command, "--help")  # compiled and cached, as for everyone who asks twice
    spent = []
    for _ in range(3):  # a busy machine is not the command's fault
        begin = os.times()
        done = distpaml(command, "--help")
        end = os.times()
        spent.append(end.children_user + end.children_system - begin.children_user - begin.children_system)
    assert done.returncode == 0 and done.stdout.startswith(f"usage: distpaml {command} ")
    assert re.search(r"\n\n[A-Z].*[.?]\n", done.stdout), "a description"
    assert min(spent) < 1.0
    if command not in ASK_TELL:
        name = ELSEWHERE.get(command, command)
        assert distpaml("--help", module=f"distpaml.{name}").stdout.startswith(f"usage: python -m distpaml.{name} ")


def test_the_version():
    assert distpaml("--version").stdout == f"distpaml {__version__}\n"


@pytest.mark.parametrize("experiment", [*shipped(), "two_link_arm"])
def test_explained_yaml_has_every_key_with_its_meaning_and_reads_back(experiment):
    config = load(experiment)
    text = explained(config)
    assert ExperimentConfig.from_yaml(text) == config
    lines = [line.strip() for line in text.splitlines()]
    for key in dotted_keys(ExperimentConfig):
        name = key.rpartition(".")[2]
        place = next(i for i, line in enumerate(lines) if line.removeprefix("# ").startswith(f"{name}:"))
        assert lines[place - 1].startswith("# "), key


def test_explain_from_the_shell():
    printed = distpaml("config", "cartpole", "--explain").stdout
    assert "# Tasks known before the first choice.\ninitial: 3\n" in printed


def test_check_names_what_it_checked(tmp_path):
    assert (
        distpaml("check", "cartpole").stdout == "cartpole keeps the contract of a domain in variants paper and code\n"
    )
    assert (
        distpaml("check", "--config", "cartpole_partial").stdout == "cartpole_partial keeps the contract of a domain\n"
    )
    nothing = distpaml("check")
    assert nothing.returncode == 2 and nothing.stderr.startswith("error: Name what is to be checked: cartpole, ")
    wrong = distpaml("check", "cartpol")
    assert wrong.returncode == 2 and wrong.stderr.startswith("error: ") and "nearest is cartpole" in wrong.stderr


@pytest.mark.parametrize("words", [["doctor"], ["sweep", "quickstart", *SIZE, "wandb=off", "--out", "here"]])
def test_a_dead_ray_address_is_a_sentence_within_ten_seconds(tmp_path, words):
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        begin = time.monotonic()
        done = distpaml(*words, cwd=tmp_path, env=ALONE | {"RAY_ADDRESS": address})
        said = [line for line in (done.stdout + done.stderr).splitlines() if address in line]
    assert done.returncode != 0 and len(said) == 1
    assert f"Ray cannot be reached at {address}: Connection refused; start the cluster, or unset RAY_ADDRESS" in said[0]
    assert time.monotonic() - begin < 30  # of which Ray's address is one refused connection; imports take the rest


def test_an_address_that_does_not_answer_is_given_up_on(monkeypatch):
    from distpaml.errors import UserError
    from distpaml.runtime import reachable

    monkeypatch.setattr(reachable, "SECONDS", 0.5)
    begin = time.monotonic()
    with pytest.raises(UserError, match="Ray cannot be reached at"):
        reachable.check_reachable("192.0.2.1:6379")  # RFC 5737: an address that nobody has
    assert time.monotonic() - begin < 5
    reachable.check_reachable("auto")


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["sweep", "search_model", "seeds=1"], "seeds is 1 but should be at least 2 in a search"),
        (["sweep", "seeds=0"], "seeds is 0 but should be how many seeds, at least 1, or a list of them"),
        (["run", "fit.device=gpu"], "fit.device is 'gpu' but should be auto, cpu or cuda; a GPU is cuda"),
        (
            ["sweep", "search_model", "search.space={model.inducing: {low: 900, high: 400}}"],
            "search.space.model.inducing.low is 900 but should be below high=400",
        ),
    ],
)
def test_sentences_that_a_person_understands(words, sentence):
    done = distpaml(*words)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and sentence in done.stderr


@pytest.mark.parametrize(
    "module, words",
    [
        ("report.__main__", [LONG]),
        ("dashboard", [LONG]),
        ("results", [LONG]),
        ("results", [".", "--out", LONG]),
        ("run", ["cartpole", "--out", LONG]),
        ("run", ["cartpole", 'out="a\\0b"']),
        ("sweep.__main__", ["--out", LONG]),
        ("sweep.__main__", ["--resume", LONG]),
        ("sweep.__main__", [f"name={LONG}"]),
        ("sweep.__main__", ["nul.yaml"]),
    ],
)
def test_a_name_that_no_file_can_have_is_one_sentence(tmp_path, monkeypatch, capsys, module, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "nul.yaml").write_text('include: ["a\\0b"]')
    assert import_module(f"distpaml.{module}").main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and said.count("\n") == 1 and said[:-1].isprintable()


@pytest.mark.parametrize(
    "module, words",
    [
        *((name, ["x"]) for name in ("run", "results", "dashboard", "domains.check", "domains.inspect")),
        *((f"{name}.__main__", ["x"]) for name in ("sweep", "report", "config", "bench")),
        ("doctor.__main__", []),
        ("ask_tell.__main__", ["ask"]),
        ("report.showcase", ["x", "--out", "x"]),
    ],
)
def test_a_complaint_about_a_word_does_not_steer_the_terminal(capsys, module, words):
    with pytest.raises(SystemExit, match="2"):
        import_module(f"distpaml.{module}").main([*words, "--\x1b[31m"])
    said = capsys.readouterr().err
    assert said.endswith(r": error: unrecognized arguments: --\x1b[31m" + "\n") and "\x1b" not in said


QUIT = """
import sys
from distpaml.domains import CartPole


class Quit(CartPole):
    def simulate(self, *arguments):
        sys.exit()
"""


@pytest.mark.parametrize("module, words", [("distpaml.run", ["domain.name=mine:Quit"]), ("distpaml.domains.check", [])])
def test_code_of_the_users_own_that_ends_the_program_is_an_error(tmp_path, module, words):
    (tmp_path / "mine.py").write_text(QUIT)
    words = [*words, *SIZE, "--out", "run", "--wandb", "off"] if words else ["mine:Quit"]
    done = distpaml(*words, module=module, cwd=tmp_path)
    assert done.returncode == 1 and "SystemExit (mine.py, line 8)" in done.stdout + done.stderr


def shell(command, **options):
    done = subprocess.run(
        ["bash", "-c", f"{command}; echo ${{PIPESTATUS[0]}}"], capture_output=True, text=True, **options
    )
    return done.stdout, done.stderr


def test_output_that_goes_nowhere_is_no_traceback():
    config = f"{sys.executable} -m distpaml.config cartpole"
    assert shell(f"{config} | true") == ("1\n", "")
    assert shell(f"{config} > /dev/full") == ("1\n", "error: The output cannot be written: No space left on device.\n")
    assert shell(f"({config}) <&- >&-") == ("0\n", "")
    plan = f"{sys.executable} -m distpaml.sweep quickstart --dry-run"
    assert shell(f"{plan} > /dev/full") == ("1\n", "error: The output cannot be written: No space left on device.\n")


def test_closed_streams_are_not_taken_by_files(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import os\nfile = open('mine.txt', 'w')\nassert file.fileno() > 2, file.fileno()"
    )
    done = shell(f"{sys.executable} -m distpaml.domains.check mine:Mine <&- >&- 2> said", cwd=tmp_path)
    assert done == ("2\n", "") and "mine has no Mine" in (tmp_path / "said").read_text()


@pytest.mark.parametrize("words", ["sweep --dry-run", "run cartpole", "domains.inspect dm_control:acrobot"])
def test_a_working_folder_that_is_gone_is_a_sentence(tmp_path, words):
    gone = tmp_path / "gone"
    gone.mkdir()
    out, said = shell(f"rmdir {gone}; {sys.executable} -m distpaml.{words}", cwd=gone, env=ALONE)
    assert out == "2\n"
    assert said == "error: The working folder cannot be used: No such file or directory; change to another one.\n"


def test_a_terminal_without_arrows_shows_escapes(tmp_path):
    environment = {**ALONE, "PYTHONIOENCODING": "latin-1"}
    words = ["run", *SIZE, "rounds=0", "method=uni", "--wandb", "off", "--out", str(tmp_path / "run")]
    done = distpaml(*words, env=environment, encoding="latin-1")
    assert (done.returncode, done.stderr) == (0, "") and r"seed 0 \u2192 " in done.stdout
