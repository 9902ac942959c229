"""Ask and tell from the shell: `python -m distpaml.ask_tell COMMAND …`, or `distpaml COMMAND …` for short.

    new DIR FILE [KEY=VALUE…]     begin an experiment from a declaration in YAML
    ask [-n N]                    which tasks to try next
    tell ID FILE…                 what was observed of a task: csv, npz or parquet
    attach FILE… KEY=VALUE…       a task that nobody asked for, by its descriptor
    fail ID REASON…               a task that could not be tried, or data to be withdrawn
    status                        where the experiment stands
    repair                        go back to the last whole line of a damaged journal

All but `new` work on the experiment in the working folder, or in `--dir DIR`.
"""

import json
import os
import sys
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from distpaml.command_line import Parser, say
from distpaml.errors import UserError

if TYPE_CHECKING:
    from distpaml.ask_tell.experiment import Experiment
    from distpaml.ask_tell.journal import Attach, Tell


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        COMMANDS[options.command](options)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped; what was told before is kept.", file=sys.stderr)
        return 130
    return 0


def new(options: Namespace) -> None:
    """Begin an experiment from a declaration in YAML."""
    from distpaml.ask_tell.declaration import Declaration
    from distpaml.ask_tell.experiment import Experiment

    declaration = Declaration.of(options.declaration, options.overrides)
    experiment = Experiment(declaration, options.directory)
    say(f"{experiment.declaration.name} begins in {options.directory}. Next: distpaml ask --dir {options.directory}")


def ask(options: Namespace) -> None:
    """Ask which tasks to try next."""
    experiment = _load(options)
    tasks = experiment.ask(options.n)
    if options.json:
        print(json.dumps([task.model_dump(include={"id", "descriptor"}) for task in tasks]))
        return
    for task in tasks:
        say(_line(experiment, task.id, task.descriptor))
    if len(tasks) < options.n:
        say(f"No more than {len(tasks)} are left to ask for.")
    first, where = tasks[0].id, _where(options)
    say(f"Try {'them' if len(tasks) > 1 else 'it'}, then: distpaml tell {first} FILE{where}")
    say(f"If it cannot be done: distpaml fail {first} 'what went wrong'{where}")


def tell(options: Namespace) -> None:
    """Tell what was observed of a task."""
    experiment = _load(options)
    _thank(experiment, experiment.tell(options.id, list(options.files)))


def attach(options: Namespace) -> None:
    """Add what was observed of a task that nobody asked for."""
    experiment = _load(options)
    files = [word for word in options.words if "=" not in word or os.path.exists(word)]
    pairs = [word.partition("=") for word in options.words if word not in files]
    if not files or not pairs:
        raise UserError("attach needs a file and the descriptor, such as: distpaml attach run.csv payload=1.5")
    _thank(experiment, experiment.attach({key: value for key, _, value in pairs}, files))


def fail(options: Namespace) -> None:
    """Say that a task could not be tried, or withdraw its data."""
    experiment = _load(options)
    event = experiment.fail(options.id, " ".join(options.reason))
    others = experiment.declaration.selection.retry_after
    say(f"Task {event.id} failed: {event.reason}. It may come back once {others} others have been observed.")


def status(options: Namespace) -> None:
    """Show where the experiment stands."""
    experiment = _load(options)
    found = experiment.status()
    if options.json:
        keys = ("id", "state", "descriptor", "transitions", "reason")
        print(json.dumps([{key: getattr(task, key) for key in keys} for task in found.tasks]))
        return
    say(f"{experiment.declaration.name}: {found.worded()}")
    for task in found.tasks:
        detail = {"out": "out", "failed": f"failed: {task.reason}"}.get(task.state, f"{task.transitions} transitions")
        say(f"{_line(experiment, task.id, task.descriptor)}  ({detail})")
    missing = experiment.declaration.initial - found.count("observed")
    say("The model chooses." if found.choosing else f"The model chooses after {missing} more.")
    if found.learning:
        say(found.learning.worded())
    if found.choosing:
        say(f"More: distpaml report {options.dir}")


def repair(options: Namespace) -> None:
    """Go back to the last whole line of a damaged journal."""
    from distpaml.ask_tell.journal import Journal

    lines, aside = Journal(Path(options.dir)).repair()
    say(f"Kept {lines} lines; the rest is in {aside}." if aside else f"All {lines} lines are whole; nothing changed.")


COMMANDS: dict[str, Callable[[Namespace], None]] = {
    command.__name__: command for command in (new, ask, tell, attach, fail, status, repair)
}


def _parser() -> Parser:
    parser = Parser(prog="distpaml", description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    parsers = {name: commands.add_parser(name, description=command.__doc__) for name, command in COMMANDS.items()}
    for name, sub in parsers.items():
        if name != "new":
            sub.add_argument(
                "--dir", default=".", metavar="DIR", help="the experiment; the working folder unless given"
            )
    parsers["new"].add_argument("directory", metavar="DIR", help="a new directory")
    parsers["new"].add_argument("declaration", metavar="FILE", help="its declaration, a YAML file")
    parsers["new"].add_argument("overrides", nargs="*", default=[], metavar="KEY=VALUE", help="such as dt=0.05")
    parsers["ask"].add_argument("-n", type=int, default=1, help="how many tasks; 1 unless given")
    for name in ("tell", "fail"):
        parsers[name].add_argument("id", type=int, metavar="ID", help="the task's number")
    parsers["tell"].add_argument("files", nargs="+", metavar="FILE", help="csv, npz or parquet")
    parsers["attach"].add_argument("words", nargs="+", metavar="FILE|KEY=VALUE", help="files and the descriptor")
    parsers["fail"].add_argument("reason", nargs="+", metavar="REASON", help="in a few words")
    for name in ("ask", "status"):
        parsers[name].add_argument("--json", action="store_true", help="for programs")
    return parser


def _load(options: Namespace) -> "Experiment":
    from distpaml.ask_tell.experiment import Experiment

    if options.dir == "." and not Path("experiment.yaml").exists():
        raise UserError("The working folder is not the directory of an experiment; name that with --dir DIR.")
    return Experiment.load(options.dir)


def _line(experiment: "Experiment", id: int, descriptor: dict) -> str:
    from distpaml.ask_tell.space import worded

    return f"task {id}: {worded(descriptor, experiment.declaration.units)}"


def _thank(experiment: "Experiment", event: "Tell | Attach") -> None:
    say(f"Task {event.id}: {event.transitions} transitions are kept.")
    for note in event.notes:
        say(f"  {note}")
    out = [task.id for task in experiment.status().tasks if task.state == "out"]
    say(f"Still out: {', '.join(map(str, out))}." if out else "Nothing is out.")


def _where(options: Namespace) -> str:
    return "" if options.dir == "." else f" --dir {options.dir}"


if __name__ == "__main__":
    sys.exit(main())
