"""How a sweep shows what it is doing: a live block on a terminal, a plain line per finished trial elsewhere."""

import re
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from distpaml.command_line import counted
from distpaml.errors import printable
from distpaml.sweep.plan import Plan

SHOWN = 8
"""Most groups in the live block, best first."""
NUMBERS = 44
"""Columns of the terminal that the block's numbers take; names have the rest."""


class SweepProgress:
    """Counts trials and rounds as they come; `with progress:` shows them."""

    def __init__(self, name: str, plan: Plan, console: Console) -> None:
        self.name, self.plan, self.console = name, plan, console
        self.finished, self.failed, self.rounds = plan.finished, plan.failed, 0
        self.running: dict[str, str] = {}
        """The trials at work, with the round of each."""
        self.done = Counter[str]()
        self.repeats = Counter[str]()
        """Choices of each trial that nearly repeat a known task."""
        self.best: dict[str, float] = {}
        """By group of seeds."""
        self.begin = time.monotonic()
        self.live = Live(
            get_renderable=self.block, console=console, refresh_per_second=2, transient=True, redirect_stderr=False
        )

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.live.stop()

    def started(self, trial: str) -> None:
        self.running.setdefault(trial, "starts")

    def round(self, trial: str, result: Mapping[str, Any]) -> None:
        """A trial has finished a round, now or in an earlier process (`replayed`)."""
        self.running[trial] = f"round {result['round']}/{result['rounds']}"
        self.rounds += not result.get("replayed")
        self.repeats[trial] += result.get("repeats", 0)
        group = _group(trial)
        self.best[group] = min(result["rmse"], self.best.get(group, result["rmse"]))

    def ended(self, trial: str, how: str, result: Mapping[str, Any]) -> None:
        """A trial will not go on: finished, stopped early or failed."""
        self.running.pop(trial, None)
        self.finished += how != "failed"
        self.failed += how == "failed"
        if how == "failed":
            return
        self.done[_group(trial)] += 1
        count = f"({self.finished} of {self.plan.trials})"
        seconds = f"{result.get('time_total_s', 0.0):.0f} s"
        measures = "  ".join(f"{name} {result[name]:.4f}" for name in ("rmse", "nll") if name in result)
        notes = ["stopped early"] if how == "stopped" else []
        if self.repeats[trial]:
            notes.append(counted(self.repeats[trial], "near repeat"))
        rounds = f"{result.get('round')}/{result.get('rounds')}"
        line = "  ".join([trial, rounds, measures, *notes, seconds, count])
        wide = not self.console.is_terminal
        self.console.print(Text(line, no_wrap=True, overflow="ignore" if wide else "ellipsis"), soft_wrap=wide)

    def say(self, text: str) -> None:
        lines = "\n".join(map(printable, text.splitlines()))
        self.console.print(Text(lines), soft_wrap=not self.console.is_terminal)

    def block(self) -> RenderableType:
        """A bar, the counts, and the best groups so far; no line is wider than the terminal."""
        total, done = max(1, self.plan.rounds), self.plan.rounds_finished + self.rounds
        left = self.plan.trials - self.finished - self.failed - len(self.running)
        minutes = (time.monotonic() - self.begin) / 60
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            self.name, ProgressBar(total, min(done, total), width=24), f"{100 * done // total} %", self._pace(minutes)
        )
        failed = f", {self.failed} failed" if self.failed else ""
        counts = f"{self.finished} done, {len(self.running)} running, {max(0, left)} left{failed}"
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("method", no_wrap=True, overflow="ellipsis", max_width=max(12, self.console.width - NUMBERS))
        for column in ("done", "best rmse", "now"):
            table.add_column(column, no_wrap=True)
        groups = dict.fromkeys([*self.best, *map(_group, list(self.running))])
        for group in sorted(groups, key=lambda name: self.best.get(name, float("inf")))[:SHOWN]:
            now = [stage for trial, stage in list(self.running.items()) if _group(trial) == group]
            best = f"{self.best[group]:.4f}" if group in self.best else ""
            table.add_row(
                escape(group),
                str(self.done[group]),
                best,
                f"{now[0]}{f' +{len(now) - 1}' if len(now) > 1 else ''}" if now else "",
            )
        return Group(bar, Text(counts, no_wrap=True, overflow="ellipsis"), table)

    def _pace(self, minutes: float) -> str:
        if not self.rounds:
            return "starting"
        rate = self.rounds / minutes
        left = (self.plan.rounds - self.plan.rounds_finished - self.rounds) / rate
        time_left = f"{max(1.0, left):.0f} min" if left < 100 else f"{left / 60:.1f} h"
        return f"{rate:.1f} rounds/min, {time_left} left"


def _group(trial: str) -> str:
    """The name of a trial without its seed."""
    return re.sub(r"-seed\d+$", "", trial)
