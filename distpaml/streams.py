"""The standard streams and the working folder of a command, however it was started."""

import os
import sys
from io import TextIOWrapper
from typing import NoReturn

from distpaml.interrupt import is_command


def mend_streams() -> None:
    """A closed stream is /dev/null, or else the next file that is opened would take its number and get what is printed.
    Characters that the encoding of the output does not have are escaped."""
    if not is_command():
        return
    if isinstance(out := sys.stdout, TextIOWrapper):
        sys.stdout = Output(out.buffer, out.encoding, errors="backslashreplace", line_buffering=True)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, it stays open


def need_folder() -> None:
    """End a command whose working folder has been deleted: paths mean nothing there, and torch does not load."""
    if not is_command():
        return
    try:
        os.getcwd()
    except OSError as error:
        sys.stderr.write(f"error: The working folder cannot be used: {error.strerror}; change to another one.\n")
        sys.exit(2)


class Output(TextIOWrapper):
    """Ends the command where nobody reads on, such as `head`, and where the disk is full."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            self._end(error)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._end(error)

    def _end(self, error: OSError) -> NoReturn:
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())  # what is left would fail once more at the end
        gone = isinstance(error, BrokenPipeError)
        sys.exit(1 if gone else f"error: The output cannot be written: {error.strerror}.")
