"""A sweep in real terminals: what is on the screen while it runs, at its end and after Ctrl-C."""

import os
import re
import sys
import time

import pexpect
import pyte
import pytest
from sweeps import small

pytestmark = pytest.mark.slow
WIDE = 400


class Terminal:
    """A command in a pseudo-terminal of so many columns; `text` is all that was on its screen, line by line.

    The screen behind it is far wider, so that a line that would wrap is one that is too long.
    """

    def __init__(self, columns, folder, *words):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "WANDB_"))}
        self.screen = pyte.HistoryScreen(WIDE, 500)
        self.stream = pyte.Stream(self.screen)
        self.process = pexpect.spawn(
            sys.executable,
            ["-m", "distpaml.sweep", *words],
            cwd=str(folder),
            env=environment | {"TERM": "xterm"},
            dimensions=(50, columns),
            encoding="utf-8",
            timeout=400,
        )
        self.seen = []

    def until(self, pattern, seconds=400):
        """Read until a screen shows the pattern; returns the seconds that it took."""
        begin = time.monotonic()
        while time.monotonic() - begin < seconds:
            try:
                self.stream.feed(self.process.read_nonblocking(10_000, timeout=1))
            except pexpect.TIMEOUT:
                continue
            except pexpect.EOF:
                break
            lines = [line.rstrip() for line in self.screen.display]
            self.seen += [line for line in lines if line and line not in self.seen]
            if re.search(pattern, "\n".join(lines)):
                return time.monotonic() - begin
        raise AssertionError(f"{pattern} was never shown:\n" + "\n".join(self.seen))

    @property
    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display).strip()

    def close(self):
        self.process.close(force=True)


@pytest.mark.parametrize("columns", [80, 100, 140])
def test_a_sweep_from_its_first_sign_of_life_to_the_next_commands(tmp_path, columns):
    words = small("methods=[paml-pool, lhs]", "wandb=offline")
    terminal = Terminal(columns, tmp_path, *[word for word in words if word != "wandb=off"], "--out", "out")
    try:
        assert terminal.until(r"quickstart: 4 trials → out") < 30  # two seconds on a machine with nothing else to do
        terminal.until(r"\d running")
        terminal.until(r"best rmse")
        terminal.until(r"--resume runs what is left")
        terminal.process.wait()
    finally:
        terminal.close()
    assert terminal.process.exitstatus == 0
    assert max(map(len, terminal.seen)) <= columns, max(terminal.seen, key=len)
    assert "running" not in terminal.text  # the live block is gone
    for said in ("paml-pool", "lhs", " *", "nats", "Report: out/report/index.html", "wandb sync --yes out/wandb/"):
        assert said in terminal.text
    assert "…" not in terminal.text


def test_ctrl_c_leaves_a_table_and_a_report_and_resume_says_what_is_left(tmp_path):
    terminal = Terminal(80, tmp_path, *small("methods=[uni]", "rounds=30", "seeds=2"), "--out", "out")
    try:
        terminal.until(r"best rmse\s.*\n.*round [2-9]")
        terminal.process.sendintr()
        terminal.until(r"Stopped; continue with: python -m distpaml.sweep --resume out")
        terminal.process.wait()
    finally:
        terminal.close()
    assert terminal.process.exitstatus == 130
    assert "│ uni" in terminal.text and "Report: out/report/index.html" in terminal.text
    assert (tmp_path / "out/report/index.html").exists()
    terminal = Terminal(80, tmp_path, "--resume", "out", "--dry-run")
    try:
        terminal.until(r"0 of 2 trials done; 2 left, with \d+ of 62 rounds to go\.")
    finally:
        terminal.close()
