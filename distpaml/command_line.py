"""What all commands have in common: how they were called, a config as their first word, and how they print."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import NoReturn

from distpaml.errors import UserError, printable


class Parser(ArgumentParser):
    """A parser whose complaints about a word cannot steer the terminal."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def say(line: str) -> None:
    """Print a line in which names and paths, which anyone may have written, cannot steer the terminal."""
    print(printable(line), flush=True)


def print_data(text: str) -> None:
    """Print lines that a program may read: to a file or a pipe as they are, on a terminal like `say`."""
    print("\n".join(map(printable, text.split("\n"))) if sys.stdout.isatty() else text, end="", flush=True)


def called(name: str) -> str:
    """How the user called this command: `distpaml run`, or `python -m distpaml.run`."""
    return sys.argv[0] if sys.argv[0].startswith("distpaml ") else f"python -m distpaml.{name}"


def add_config(parser: ArgumentParser, known: str, examples: str, default: str = "cartpole") -> None:
    """The words of a command, `CONFIG KEY=VALUE…`, and --config for those who prefer an option."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="CONFIG | KEY=VALUE",
        help=f"a YAML file or one of {known} (default: {default}); then overrides such as {examples}",
    )
    parser.add_argument("--config", metavar="CONFIG", help="the same as the first word")


def config_and_overrides(words: list[str], option: str | None) -> tuple[str | None, list[str]]:
    """The config, if one is named, and the overrides."""
    configs = [word for word in words if "=" not in word] + ([option] if option else [])
    overrides = [word for word in words if "=" in word]
    if len(configs) > 1:
        raise UserError(
            f"There should be one config, but there are {' and '.join(configs)}; an override is dotted.key=value, for "
            "example model.inducing=100."
        )
    return (configs[0] if configs else None), overrides


def counted(number: int, thing: str) -> str:
    """`1 trial`, `2 trials`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def shown_path(path: Path) -> str:
    """A path below the working folder as one would write it there; others in full."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) and path != here else str(path)
