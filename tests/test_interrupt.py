"""Ctrl-C at any moment of any command is a short sentence and status 130."""

import signal
import subprocess
import sys

import pytest

PRESSED = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(60)"
MINE = f"""
from distpaml.domains import CartPole


class Mine(CartPole):
    def simulate(self, *arguments):
        {PRESSED}
"""
STOPPED = (130, "", "Stopped.\n")


def python(folder, *words):
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=200)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("module", ["results", "domains.inspect", "run", "sweep", "ask_tell"])
def test_in_the_middle_of_imports_it_ends_at_once(tmp_path, module):
    for slow in ("numpy", "mujoco", "rich", "argparse"):
        (tmp_path / f"{slow}.py").write_text(PRESSED)
    assert python(tmp_path, "-m", f"distpaml.{module}", "--help") == STOPPED


def test_a_command_that_is_named_after_distpaml_heeds_it_too(tmp_path):
    (tmp_path / "argparse.py").write_text(PRESSED)
    assert python(tmp_path, "-m", "distpaml", "config") == STOPPED
    assert python(tmp_path, "-mdistpaml.config") == STOPPED


def test_a_command_that_has_nothing_to_say_about_it_ends_too(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    assert python(tmp_path, "-m", "distpaml.domains.check", "mine:Mine") == STOPPED


def test_in_the_middle_of_work_it_is_heeded_in_an_import_too(tmp_path):
    (tmp_path / "mine.py").write_text(MINE.replace(PRESSED, "import late"))
    (tmp_path / "late.py").write_text(PRESSED)
    words = ("-m", "distpaml.run", "cartpole", "domain.name=mine:Mine", "--quick", "--wandb", "off", "--out", "run")
    status, _, said = python(tmp_path, *words)
    assert (status, said) == (130, "Stopped; the same command continues from the last finished round.\n")


def test_work_is_not_interrupted_before_an_import_has_ended(tmp_path):
    (tmp_path / "late.py").write_text(PRESSED.replace("60", "1") + "\nwhole = True")
    (tmp_path / "program.py").write_text(
        "import signal, time\nfrom distpaml.interrupt import interrupt_work\n"
        "signal.signal(signal.SIGINT, interrupt_work)\n"
        "try:\n    import late\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    print(late.whole)"
    )
    assert python(tmp_path, "program.py") == (0, "True\n", "")


@pytest.mark.parametrize(
    ("raised", "end"),
    [("os.kill(os.getpid(), signal.SIGINT)", STOPPED), ("sys.exit(signal.SIGTERM)", (-signal.SIGTERM, "", ""))],
    ids=["Ctrl-C", "SIGTERM, as Ray raises it"],
)
def test_it_is_not_lost_where_python_drops_exceptions(tmp_path, raised, end):
    forks = f"""
        import os, signal, sys, time
        os.register_at_fork(after_in_parent=lambda: {raised})
        os.fork() or os._exit(0)
        time.sleep(60)"""
    (tmp_path / "mine.py").write_text(MINE.replace(PRESSED, forks))
    assert python(tmp_path, "-m", "distpaml.domains.check", "mine:Mine") == end


def test_an_error_is_still_an_error_and_other_programs_keep_their_own_ways(tmp_path):
    (tmp_path / "argparse.py").write_text("1 / 0")
    assert python(tmp_path, "-m", "distpaml.config")[2].endswith("ZeroDivisionError: division by zero\n")
    (tmp_path / "program.py").write_text("import distpaml, signal, sys\nprint(signal.getsignal(2), sys.excepthook)")
    plain = "<built-in function default_int_handler> <built-in function excepthook>\n"
    for words in (["program.py"], ["-m", "program", "distpaml"], ["-c", "import program"]):
        assert python(tmp_path, *words) == (0, plain, "")
