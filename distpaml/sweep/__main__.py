"""Run a sweep, or continue one: `python -m distpaml.sweep [FILE] [key=value…] [--out DIR] [--resume DIR]`."""

import os
import shlex
import signal
import sys
from argparse import Namespace
from datetime import datetime
from typing import TYPE_CHECKING

from distpaml.command_line import Parser, add_config, called, config_and_overrides
from distpaml.domains import SimulationError
from distpaml.errors import UserError, printable
from distpaml.interrupt import interrupt_work, work_begins
from distpaml.runtime.lifeline import remedy
from distpaml.sweep.load import load_sweep, shipped_sweeps

if TYPE_CHECKING:
    from rich.console import Console

    from distpaml.sweep.driver import Sweep


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_intermixed_args(arguments)
    from rich.console import Console

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    signal.signal(signal.SIGTERM, interrupt_work)
    sweep = None
    try:
        sweep = _sweep(options)
        work_begins()
        with remedy(_continue(sweep)):
            return _dry_run(sweep, options, console) if options.dry_run else _run(sweep, options, console)
    except (UserError, SimulationError) as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        begun = sweep and (sweep.storage.local / "sweep.yaml").exists()
        print(f"Stopped; {_continue(sweep)}" if sweep and begun else "Stopped before the sweep began.", file=sys.stderr)
        return 130


def _continue(sweep: "Sweep") -> str:
    return f"continue with: python -m distpaml.sweep --resume {shlex.quote(sweep.storage.shown)}"


def _parser() -> Parser:
    parser = Parser(prog=called("sweep"), description="Run many experiments, or continue them.")
    overrides = "seeds=5, methods=[uni,lhs], grid.model.inducing=[100,300] or rounds=8"
    add_config(parser, ", ".join(shipped_sweeps()), overrides, default="quickstart")
    parser.add_argument(
        "--out", metavar="DIR", help="a folder that all machines share, or s3://… (default: sweeps/NAME-TIME)"
    )
    parser.add_argument("--resume", metavar="DIR", help="continue a sweep; overrides extend it, such as seeds=5")
    parser.add_argument("--retry-failed", action="store_true", help="with --resume: run failed trials again")
    parser.add_argument("--dry-run", action="store_true", help="list the trials, what they need and how long it takes")
    parser.add_argument("--verbose", action="store_true", help="show tracebacks of failed trials and Ray's messages")
    return parser


def _sweep(options: Namespace) -> "Sweep":
    from distpaml.sweep.driver import Sweep
    from distpaml.sweep.storage import Storage

    file, words = config_and_overrides(options.words, options.config)
    if options.resume:
        if file or options.out:
            raise UserError("--resume DIR continues the sweep in DIR; it takes overrides, but no file and no --out.")
        storage = Storage.of(options.resume)
        storage.forget()
        storage.pull("sweep.yaml")
        if not (storage.local / "sweep.yaml").exists():
            raise UserError(f"{options.resume} is not the folder of a sweep: it has no sweep.yaml.")
        return Sweep(load_sweep(storage.local / "sweep.yaml", words), storage)
    parts = load_sweep(file or "quickstart", words)
    sweep = Sweep(parts, Storage.of(options.out or f"sweeps/{parts[0].name}-{datetime.now():%Y%m%d-%H%M%S}"))
    sweep.storage.forget()
    sweep.storage.pull("sweep.yaml")
    kept = sweep.storage.local / "sweep.yaml"
    if kept.exists() and load_sweep(kept) != parts:
        raise UserError(f"{sweep.storage.where} holds another sweep; choose another --out, or --resume it.")
    return sweep


def _dry_run(sweep: "Sweep", options: Namespace, console: "Console") -> int:
    from distpaml.sweep.plan import announced, dry_run, plan_of

    for line in (announced(sweep), *dry_run(sweep, plan_of(sweep, options.retry_failed), os.cpu_count() or 1)):
        console.print(printable(line), soft_wrap=True, markup=False)
    return 0


def _run(sweep: "Sweep", options: Namespace, console: "Console") -> int:
    from distpaml.sweep.plan import announced

    console.print(printable(announced(sweep)), soft_wrap=True, markup=False)  # before anything slow is imported
    from distpaml.sweep.driver import opened, run_sweep
    from distpaml.sweep.plan import plan_of
    from distpaml.sweep.progress import SweepProgress
    from distpaml.sweep.summary import print_summary

    first = sweep.parts[0]
    with opened(sweep) as journal:
        plan = plan_of(sweep, options.retry_failed)
        if plan.rounds_finished:
            console.print(plan.left(), soft_wrap=True)
        ending = sweep.storage, first.search, first.experiments[0], console
        progress = SweepProgress(first.name, plan, console)
        try:
            with progress:
                run_sweep(sweep, journal, options.retry_failed, options.verbose, progress.say, progress)
        except KeyboardInterrupt:
            print_summary(*ending)  # of what there is; a second Ctrl-C stops this too
            raise
        print_summary(*ending)
        failed = [event for event in journal.last().values() if event["event"] == "trial failed"]
        for event in failed:
            console.print(printable(f"{event['trial']} failed: {event['message']}"), soft_wrap=True, markup=False)
        if failed:
            again = f"python -m distpaml.sweep --resume {shlex.quote(sweep.storage.shown)} --retry-failed"
            console.print(printable(f"Failed trials run again with: {again}"), soft_wrap=True, markup=False)
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
