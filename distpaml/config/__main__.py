"""Print an experiment with every key resolved: `python -m distpaml.config cartpole seed=3 --quick`."""

import sys
from argparse import ArgumentParser

from distpaml.config.load import load, shipped
from distpaml.errors import UserError


def main() -> int:
    parser = ArgumentParser(prog="python -m distpaml.config", description="Print an experiment's resolved YAML.")
    parser.add_argument(
        "words",
        nargs="*",
        metavar="CONFIG | KEY=VALUE",
        help=f"a YAML file or one of {', '.join(shipped())}, then overrides such as model.inducing=100",
    )
    parser.add_argument("--quick", action="store_true", help="shrink the experiment to about a minute")
    arguments = parser.parse_intermixed_args()
    config, overrides = None, arguments.words
    if overrides and "=" not in overrides[0]:
        config, *overrides = overrides
    try:
        print(load(config, overrides, arguments.quick).to_yaml(), end="")
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
