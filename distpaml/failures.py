"""Errors of the user's own code: type, file and line in a sentence, and the whole traceback beside the run."""

import traceback
from pathlib import Path

from distpaml.command_line import shown_path
from distpaml.durable_io import write_durably
from distpaml.errors import printable

FILE = "error.txt"
_OTHERS = (str(Path(__file__).parent), "site-packages", "/lib/python", "<frozen")
"""What is not the user's own code, by the paths of its files."""


def described(error: BaseException) -> str:
    """`ValueError: bad shape (my_arm.py, line 12)`: the deepest line of the user's own code, or else of any."""
    message = " ".join(str(error).split()).rstrip(".")
    name = type(error).__name__
    return printable(f"{name}{f': {message}' if message else ''}{where(error)}")


def where(error: BaseException) -> str:
    """` (my_arm.py, line 12)`, or nothing for an error that has no traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not any(other in frame.filename for other in _OTHERS)]
    if not frames:
        return ""
    frame = (own or list(frames))[-1]
    return f" ({shown_path(Path(frame.filename))}, line {frame.lineno})"


def by_sigterm(error: BaseException | None) -> bool:
    """Whether Ray, which makes a SystemExit of SIGTERM, ends the process, and not the user's own code."""
    return error is not None and (
        hasattr(error, "ray_terminate_msg") or by_sigterm(error.__cause__ or error.__context__)
    )


def text_of(error: BaseException) -> str:
    """The whole traceback."""
    return "".join(traceback.format_exception(error))


def keep(error: BaseException, folder: Path) -> bool:
    """Write the traceback into `FILE` in the folder of the run that failed; False where nothing can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_durably(folder / FILE, text_of(error).encode(errors="backslashreplace"))
    except (OSError, ValueError):
        return False
    return True
