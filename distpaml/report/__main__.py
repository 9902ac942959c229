"""Write the report of runs and sweeps: `python -m distpaml.report DIR… [--out DIR] [--figures]`."""

import sys
from argparse import ArgumentParser
from pathlib import Path

from distpaml.command_line import called
from distpaml.errors import UserError
from distpaml.report import write_report


def main(arguments: list[str] | None = None) -> int:
    parser = ArgumentParser(prog=called("report"), description="One page about runs and sweeps.")
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIR", help="a sweep, a run, or a folder of them")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: DIR/report)")
    parser.add_argument(
        "--figures", action="store_true", help="also write the figures as PDF and PNG, to report/figures"
    )
    options = parser.parse_args(arguments)
    try:
        for directory in options.directories:
            if not directory.is_dir():
                raise UserError(f"{directory} is not a directory; name that of a sweep or of a run.")
        page = write_report(options.directories, options.out or options.directories[0] / "report", options.figures)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"Report: {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
