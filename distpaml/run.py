"""Run one experiment: `python -m distpaml.run cartpole seed=3 --out runs/first`.

Stop it at any time; the same command continues from the last finished round.
"""

import shlex
import sys
from argparse import Namespace
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table

from distpaml.catalogue import HEADLINES, SHORT_UNITS, planned_rounds
from distpaml.command_line import Parser, add_config, called, config_and_overrides, shown_path
from distpaml.config import ExperimentConfig, load, shipped
from distpaml.config.load import worked_examples
from distpaml.domains import SimulationError
from distpaml.errors import UserError, printable
from distpaml.failures import FILE, described, keep, text_of
from distpaml.interrupt import work_begins
from distpaml.runtime.lifeline import remedy

if TYPE_CHECKING:
    from distpaml.rounds import Record

ROOMY = 100
"""Columns of a terminal from which on the paper's measures are shown too."""


def main(arguments: list[str] | None = None) -> int:
    parser = Parser(prog=called("run"), description="Run one experiment, or continue it.")
    add_config(parser, ", ".join(shipped() | worked_examples()), "seed=3 or model.inducing=100")
    parser.add_argument("--out", metavar="DIR", help="the run's directory (default: runs/NAME-METHOD-SEED)")
    parser.add_argument("--quick", action="store_true", help="shrink the experiment to about a minute")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="set damaged files aside and go on after the last whole round; without a config, of the run in --out",
    )
    parser.add_argument("--verbose", action="store_true", help="print the traceback of an error in your own code")
    parser.add_argument(
        "--wandb",
        choices=("auto", "online", "offline", "off"),
        default="auto",
        help="whether W&B gets the rounds; auto (the default): online where there is a key, else offline",
    )
    options = parser.parse_intermixed_args(arguments)
    console = Console(highlight=False)
    path = Path()
    try:
        config = _config(options)
        path = _path(options.out or config.out or _directory(config, options.quick))
        work_begins()
        with remedy("the same command continues from the last finished round."):
            if options.repair and not _repair(config, path, console):
                return 0
            return _run(config, path, options.wandb, console)
    except (UserError, SimulationError) as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return 2
    except (Exception, SystemExit) as error:  # of a domain, a utility, a descriptor or a network of the user's own
        if isinstance(error, SystemExit) and error.code:  # it says itself that something went wrong
            raise
        kept = f"; the traceback is in {shown_path(path / FILE)}" if keep(error, path) else ""
        if options.verbose:
            print(*map(printable, text_of(error).splitlines()), sep="\n", file=sys.stderr)
        print(printable(f"error: {described(error)}{kept}."), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped; the same command continues from the last finished round.", file=sys.stderr)
        return 130


def _config(options: Namespace) -> ExperimentConfig:
    """The experiment that is named; if none is, a repair takes that of the run."""
    named, overrides = config_and_overrides(options.words, options.config)
    if options.repair and options.out and not (named or overrides or options.quick):
        from distpaml.records import read_config

        return read_config(Path(options.out))
    return load(named, overrides, options.quick)


def _path(out: str) -> Path:
    if "://" in out:
        raise UserError(f"A run is kept in a folder, not at {out}; object storage is for `{called('sweep')} --out`.")
    return Path(out)


def _directory(config: ExperimentConfig, quick: bool) -> str:
    return f"runs/{config.name}-{config.method}-{config.seed}{'-quick' if quick else ''}"


def _run(config: ExperimentConfig, path: Path, wandb: str, console: Console) -> int:
    _say(console, f"{config.name}, {config.method}, seed {config.seed} → {path}")
    from distpaml.report import write_report
    from distpaml.runtime.run_experiment import run_experiment  # loads torch: a misspelt key should not wait for it
    from distpaml.tracking import Tracker

    records = list["Record"]()
    with _Display(config, console) as display, ExitStack() as tracking:
        tracker = Tracker(config, path, path, path.absolute().name, config.name, wandb, display.say)
        with closing(run_experiment(config, path, display.stage)) as rounds:
            for record in rounds:
                if not records:  # the run is locked now: another process may have been writing
                    tracking.enter_context(tracker)
                tracker.add(record)
                display.finished(record)
                records.append(record)
    console.print(_table(records, list(config.domain.box), _measures(console)))
    where = shlex.quote(str(path))
    for line in (
        f"Records: {path}",
        f"Report: {write_report([path], path / 'report')}",
        f"TensorBoard: tensorboard --logdir {where}",
        *([f"W&B: wandb sync --yes {where}/wandb/offline-run-*"] if list(path.glob("wandb/offline-run-*")) else []),
        f"In Python: distpaml.load_run({str(path)!r})",
    ):
        _say(console, line)
    return 0


def _repair(config: ExperimentConfig, path: Path, console: Console) -> bool:
    """Mend the run. True if it continues here; False if it is a trial, which continues in its sweep."""
    from distpaml.runtime.repair import repair

    with _Display(config, console) as display:
        _say(console, repair(config, path, display.stage))
    sweep = path.absolute().parent.parent
    if path.absolute().parent.name != "trials" or not (sweep / "sweep.yaml").exists():
        return True
    resume = f"python -m distpaml.sweep --resume {shlex.quote(shown_path(sweep))} --retry-failed"
    _say(console, f"It is a trial of a sweep; continue with: {resume}")
    return False


def _say(console: Console, line: str) -> None:
    console.print(printable(line), soft_wrap=True, markup=False)


def _measures(console: Console) -> tuple[str, ...]:
    """What fits on a line."""
    return HEADLINES[:2] if console.is_terminal and console.width < ROOMY else HEADLINES


class _Display:
    """One line per finished round; on a terminal also a progress bar with the current stage."""

    def __init__(self, config: ExperimentConfig, console: Console) -> None:
        self.console = console
        columns = "{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        self.bar = Progress(*columns, console=console, disable=not console.is_terminal, transient=True)
        self.rounds = planned_rounds(config.method, config.rounds)
        self.task = self.bar.add_task("start", total=self.rounds + 1)

    def __enter__(self) -> "_Display":
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def stage(self, round: int, stage: str) -> None:
        self.bar.update(self.task, completed=round, description=f"round {round}: {stage}")

    def say(self, sentence: str) -> None:
        _say(self.console, f"warning: {sentence}")

    def finished(self, record: "Record") -> None:
        measures = "  ".join(f"{name} {getattr(record, name):.4f}" for name in _measures(self.console))
        seconds = sum(record.seconds.values())
        line = f"round {record.round}/{self.rounds}  tasks {record.tasks}  {measures}  {seconds:.1f} s"
        repeats = [added.repeats for added in record.added if added.repeats is not None]
        self.console.print(line, soft_wrap=True)
        if repeats:
            self.console.print(f"  nearly repeats task {', '.join(map(str, repeats))}", soft_wrap=True)


def _table(records: "list[Record]", parameters: list[str], measures: tuple[str, ...]) -> Table:
    """The errors of every round, mean over the test tasks, and the tasks that it added."""
    heads = (f"{name}\n{SHORT_UNITS[name.partition('_')[0]]}" for name in measures)
    table = Table("round", "tasks", *heads, f"chosen\n{escape(printable(', '.join(parameters)))}")
    for record in records:
        errors = (f"{getattr(record, name):.4f}" for name in measures)
        chosen = "; ".join(
            ", ".join(f"{value:.3g}" for value in added.task)
            + ("" if added.repeats is None else f" (≈ task {added.repeats})")
            for added in record.added
        )
        table.add_row(str(record.round), str(record.tasks), *errors, chosen if record.round else "")
    return table


if __name__ == "__main__":
    sys.exit(main())
