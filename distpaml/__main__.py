"""`distpaml COMMAND …` is `python -m distpaml.COMMAND …`."""

import sys
from runpy import run_module

from distpaml import __version__
from distpaml.names import nearest

COMMANDS = {
    "sweep": "run many experiments, or continue them",
    "run": "run one experiment, or continue it",
    "report": "write a page about runs and sweeps, or about an experiment of your own",
    "dashboard": "the same page, live",
    "results": "the results of runs and sweeps as a csv or parquet table",
    "config": "print an experiment with every key, and what each means",
    "check": "does a domain of your own keep its contract?",
    "inspect": "what can be varied in a MuJoCo model",
    "bench": "measure against what you would use instead",
    "doctor": "check this machine or cluster",
    "new": "start an experiment of your own, for ask and tell",
    "ask": "get the tasks to try next",
    "tell": "report what you observed of a task",
    "attach": "report a task that was not asked for",
    "fail": "report that a task could not be tried",
    "status": "show the state of an experiment",
    "repair": "return to the last whole line of a damaged journal",
}
ASK_TELL = ("new", "ask", "tell", "attach", "fail", "status", "repair")
"""Commands that are `python -m distpaml.ask_tell COMMAND …`."""
ELSEWHERE = {"check": "domains.check", "inspect": "domains.inspect"} | dict.fromkeys(ASK_TELL, "ask_tell")
"""Modules whose names are not the command's."""


def main() -> int:
    name, *rest = sys.argv[1:] or ["--help"]
    if name in COMMANDS:
        sys.argv = ["distpaml", name, *rest] if name in ASK_TELL else [f"distpaml {name}", *rest]
        run_module(f"distpaml.{ELSEWHERE.get(name, name)}", run_name="__main__")
        return 0
    if name in ("-h", "--help"):
        print("usage: distpaml COMMAND …\n")
        print("\n".join(f"  {command:11}{what}" for command, what in COMMANDS.items()))
        print("\n`distpaml COMMAND --help` says more; `distpaml --version` prints the version.")
        return 0
    if name == "--version":
        print(f"distpaml {__version__}")
        return 0
    print(f"error: There is no command {name!r}{nearest(name, COMMANDS)}.", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
