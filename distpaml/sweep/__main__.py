"""Run a sweep, or continue one: `python -m distpaml.sweep [FILE] [key=value…] [--out DIR] [--resume DIR]`."""

import os
import shlex
import signal
import sys

TOO_EARLY = "Stopped before the sweep began."


def _stop_early(*_: object) -> None:
    print(TOO_EARLY, file=sys.stderr, flush=True)
    os._exit(130)  # the imports that are under way have nothing to tidy up


if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _stop_early)  # the imports below take seconds

from argparse import ArgumentParser, Namespace
from datetime import datetime

from rich.console import Console

from distpaml.domains import SimulationError
from distpaml.errors import UserError, printable
from distpaml.runtime.lifeline import remedy
from distpaml.sweep.driver import Sweep, opened, run_sweep
from distpaml.sweep.load import load_sweep, shipped_sweeps
from distpaml.sweep.storage import Storage


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_intermixed_args(arguments)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    signal.signal(signal.SIGTERM, _interrupted)
    if signal.getsignal(signal.SIGINT) is _stop_early:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sweep = None
    try:
        sweep = _sweep(options)
        with remedy(_continue(sweep)):
            return _run(sweep, options, console)
    except (UserError, SimulationError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        begun = sweep and (sweep.storage.local / "sweep.yaml").exists()
        print(f"Stopped; {_continue(sweep)}" if sweep and begun else TOO_EARLY, file=sys.stderr)
        return 130


def _continue(sweep: Sweep) -> str:
    return f"continue with: python -m distpaml.sweep --resume {shlex.quote(sweep.storage.where)}"


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="python -m distpaml.sweep", description="Run many experiments, or continue them.")
    parser.add_argument(
        "words",
        nargs="*",
        metavar="FILE | KEY=VALUE",
        help=f"a YAML file or one of {', '.join(shipped_sweeps())}, "
        "then overrides such as seeds=5, methods=[uni,lhs], grid.model.inducing=[100,300] or rounds=8",
    )
    parser.add_argument(
        "--out", metavar="DIR", help="a folder that all machines share, or s3://… (default: sweeps/NAME-TIME)"
    )
    parser.add_argument("--resume", metavar="DIR", help="continue a sweep; overrides extend it, such as seeds=5")
    parser.add_argument("--retry-failed", action="store_true", help="with --resume: run failed trials again")
    parser.add_argument("--verbose", action="store_true", help="show Ray's messages too")
    return parser


def _sweep(options: Namespace) -> Sweep:
    words = list(options.words)
    file = words.pop(0) if words and "=" not in words[0] else None
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


def _run(sweep: Sweep, options: Namespace, console: Console) -> int:
    def say(line: str) -> None:
        console.print(printable(line), soft_wrap=True, markup=False)

    trials = sweep.trials
    with opened(sweep) as journal:
        search = sweep.parts[0].search
        count = f"{search.samples} samples of {len(trials[0].runs)} runs" if search else f"{len(trials)} trials"
        say(f"{sweep.parts[0].name}: {count} → {sweep.storage.where}")
        run_sweep(sweep, journal, options.retry_failed, options.verbose, say)
        return _finish(sweep, journal, console)


def _finish(sweep: Sweep, journal, console: Console) -> int:
    from distpaml.report import write_report
    from distpaml.sweep.results import results_table

    sweep.storage.pull("trials")
    console.print(results_table(sweep.storage.local))
    report = write_report([sweep.storage.local], sweep.storage.local / "report")
    sweep.storage.push("events.jsonl", "report")
    failed = [event for event in journal.last().values() if event["event"] == "trial failed"]
    for event in failed:
        console.print(printable(f"{event['trial']} failed: {event['message']}"), soft_wrap=True, markup=False)
    console.print(f"Report: {report}", soft_wrap=True, markup=False)
    return 1 if failed else 0


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
