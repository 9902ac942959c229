"""Write the report of runs and sweeps: `python -m distpaml.report DIR… [--out DIR] [--figures]`.

A directory of an experiment for ask and tell has a page of its own.
"""

import os
import sys
from pathlib import Path

from distpaml.command_line import Parser, called, say
from distpaml.errors import UserError
from distpaml.report import write_report


def main(arguments: list[str] | None = None) -> int:
    parser = Parser(
        prog=called("report"), description="One page about runs and sweeps, or about an experiment for ask and tell."
    )
    parser.add_argument(
        "directories", nargs="+", type=Path, metavar="DIR", help="a sweep, a run, a folder of them, or an experiment"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: DIR/report)")
    parser.add_argument(
        "--figures", action="store_true", help="also write figures as PDF and PNG, to figures/ beside the page"
    )
    options = parser.parse_args(arguments)
    try:
        for directory in options.directories:
            if not os.path.isdir(directory):  # False also where the name is too long
                raise UserError(f"{directory} is not a directory; name that of a sweep or of a run.")
        out = options.out or options.directories[0] / "report"
        if any(map(_is_experiment, options.directories)):
            page = _experiment_report(options.directories, out)
        else:
            page = write_report(options.directories, out, options.figures)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    say(f"Report: {page}")
    return 0


def _is_experiment(directory: Path) -> bool:
    return os.path.isfile(directory / "experiment.yaml")


def _experiment_report(directories: list[Path], out: Path) -> Path:
    """Of one experiment for ask and tell; its missing fits take seconds each."""
    from distpaml.ask_tell.report import write_experiment_report

    if len(directories) > 1:
        raise UserError("An experiment for ask and tell has a page of its own; name its directory alone.")

    def watch(tasks: int, of: int) -> None:
        print(f"a model of {tasks} of {of} tasks, each left out in turn …", file=sys.stderr, flush=True)

    return write_experiment_report(directories[0], out, watch)


if __name__ == "__main__":
    sys.exit(main())
