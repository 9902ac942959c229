"""`python -m distpaml.bench [NAME…] [--json FILE]`: run the named benchmarks, or all of them."""

import json
import sys
from argparse import Namespace
from importlib import import_module
from pathlib import Path

from distpaml.bench import BENCHES, Result
from distpaml.command_line import Parser, called
from distpaml.durable_io import write_durably
from distpaml.errors import UserError
from distpaml.names import nearest


def main(arguments: list[str] | None = None) -> int:
    parser = Parser(prog=called("bench"), description="Run the named benchmarks, or all of them.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of: {', '.join(BENCHES)}; none means all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write one JSON object per line")
    parser.add_argument("--experiment", metavar="NAME", help="what `infer`, `trial`, `loop`, `capacity`, `greedy` run")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds of `loop`, `capacity` and `greedy`")
    parser.add_argument("--runs", type=Path, metavar="DIR", help="finished runs that `loop` compares")
    parser.add_argument(
        "--set",
        action="append",
        metavar="KEY=VALUE",
        help="overrides for `trial`, `loop`, `capacity`, `greedy`, `choose`",
    )
    parser.add_argument("--steps", type=int, metavar="N", help="steps of the paper's procedure in `fit` and `trial`")
    parser.add_argument("--against", choices=["gpytorch"], help="also race a plain gpytorch SVGP in `fit`")
    options = parser.parse_intermixed_args(arguments)
    try:
        if options.steps is not None and options.steps < 1:
            raise UserError(f"--steps is {options.steps}, but should be at least 1.")
        if options.seeds is not None and options.seeds < 1:
            raise UserError(f"--seeds is {options.seeds}, but should be at least 1.")
        if options.json:
            write(options.json, [])
        results = run(options.names or list(BENCHES), options)
        if options.json:
            write(options.json, results)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def run(names: list[str], options: Namespace) -> list[Result]:
    """Results of the benchmarks in order, printed as they come."""
    for name in names:
        if name not in BENCHES:
            raise UserError(f"There is no benchmark {name!r}{nearest(name, BENCHES)}.")
    results = []
    for name in names:
        for result in import_module(f"distpaml.bench.{name}").run(options):
            print(
                f"{result.name}: {result.ours:.4g} {result.unit}, {result.ratio:.1f} times better than "
                f"{result.other:.4g} {result.unit} of {result.against}",
                flush=True,
            )
            results.append(result)
    return results


def write(path: Path, results: list[Result]) -> None:
    """One line per result: {"name": …, "ratio": …, "ours": …, "other": …, "unit": …}."""
    keys = ("name", "ratio", "ours", "other", "unit")
    lines = [json.dumps({key: getattr(result, key) for key in keys}) + "\n" for result in results]
    try:
        write_durably(path, "".join(lines).encode())
    except OSError as error:
        raise UserError(f"--json: cannot write {path} ({error.strerror}).") from error


if __name__ == "__main__":
    sys.exit(main())
