"""Check this machine and the cluster it belongs to: `python -m distpaml.doctor [--storage DIR|s3://…]`."""

import sys
from collections.abc import Sequence
from functools import partial

from distpaml.command_line import Parser, called, say
from distpaml.doctor import checks
from distpaml.errors import UserError


def main(arguments: Sequence[str] = ()) -> int:
    parser = Parser(prog=called("doctor"), description="Check what works here, and how to fix what does not.")
    parser.add_argument("--storage", metavar="DIR", help="test a sweep's --out on all machines: a folder or s3://…")
    where = parser.parse_args(arguments).storage
    wanted = dict(checks.CHECKS)
    if where:
        wanted["storage"] = partial(checks.storage, where)
    problems = 0
    for name, function in wanted.items():
        try:
            say(f"ok       {name}: {function()}")
        except UserError as problem:
            problems += 1
            say(f"problem  {name}: {problem}")
        except Exception as error:  # so broken that the check itself fails
            problems += 1
            said = " ".join(str(error).split())
            say(f"problem  {name}: {type(error).__name__}, {said}; reinstall distpaml.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
