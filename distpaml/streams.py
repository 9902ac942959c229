"""The standard streams of a command, however it was started."""

import os
import sys
from io import TextIOWrapper

from distpaml.interrupt import is_command


def mend_streams() -> None:
    """A closed stream is /dev/null, or else the next file that is opened would take its number and get what is printed.
    Characters that the encoding of the output does not have are escaped."""
    if not is_command():
        return
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, it stays open
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
