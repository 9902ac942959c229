"""Print an experiment with every key: `python -m distpaml.config cartpole seed=3 --quick [--explain]`."""

import sys

from distpaml.command_line import Parser, add_config, called, config_and_overrides, print_data
from distpaml.config.explain import explained
from distpaml.config.load import load, shipped, worked_examples
from distpaml.errors import UserError


def main(arguments: list[str] | None = None) -> int:
    parser = Parser(prog=called("config"), description="Print an experiment as YAML, with every key resolved.")
    add_config(parser, ", ".join(shipped() | worked_examples()), "model.inducing=100")
    parser.add_argument("--quick", action="store_true", help="shrink the experiment to about a minute")
    parser.add_argument("--explain", action="store_true", help="say what every key means")
    options = parser.parse_intermixed_args(arguments)
    try:
        config = load(*config_and_overrides(options.words, options.config), options.quick)
        print_data(explained(config) if options.explain else config.to_yaml())
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
