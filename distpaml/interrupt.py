"""Ctrl-C ends every command with a sentence and status 130, from its first import on."""

import os
import signal
import sys
import time
from threading import Timer
from types import FrameType, TracebackType

STOPPED = "Stopped.\n"
STATUS = 130
IMPORTS = "<frozen importlib._bootstrap>"
LONGEST_IMPORT = 10.0
"""Seconds for which work is not interrupted in the middle of an import."""
PAUSE = 0.05
"""Seconds until an interrupt that came at a bad moment is tried again."""
_asked: float | None = None


def heed_ctrl_c() -> None:
    """Make Ctrl-C end a command with a sentence; a program that imports distpaml keeps its own handling of Ctrl-C."""
    if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
        sys.excepthook = _uncaught
    if is_command():
        sys.unraisablehook = _swallowed


def work_begins() -> None:
    """From here on Ctrl-C raises KeyboardInterrupt, since there is something to tidy up."""
    if signal.getsignal(signal.SIGINT) is _interrupted:
        signal.signal(signal.SIGINT, interrupt_work)


def interrupt_work(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, once an import has ended: what half of a module in C leaves behind cannot be imported
    again, and those who tidy up may need it."""
    global _asked
    _asked = _asked or time.monotonic()
    if _importing(frame) and time.monotonic() < _asked + LONGEST_IMPORT:
        _try_again(number)
    else:
        _asked = None
        raise KeyboardInterrupt(number)


def is_command() -> bool:
    """Whether the word before the arguments of this process is that of `python -m distpaml.…` or of the script."""
    word, *_ = *sys.orig_argv[-len(sys.argv) :], ""
    return os.path.basename(word).removeprefix("-m").partition(".")[0] == "distpaml"


def _interrupted(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but end at once in the middle of an import: it has nothing to tidy up, and a module in C
    would make an ImportError of it."""
    if _importing(frame):
        os.write(2, STOPPED.encode())
        os._exit(STATUS)
    signal.default_int_handler(number, frame)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename != IMPORTS:
        frame = frame.f_back
    return frame is not None


def _try_again(number: int) -> None:
    again = Timer(PAUSE, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


def _swallowed(lost: "sys.UnraisableHookArgs") -> None:
    """Try an interrupt again that was raised where Python drops exceptions, such as in a hook of `os.fork`."""
    error = lost.exc_value
    if isinstance(error, KeyboardInterrupt):
        _try_again(error.args[0] if error.args else signal.SIGINT)
    elif isinstance(error, SystemExit) and error.code == signal.SIGTERM:  # what Ray makes of it while it starts
        _try_again(signal.SIGTERM)
    else:
        sys.__unraisablehook__(lost)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        return sys.__excepthook__(kind, error, trace)
    sys.stderr.write(STOPPED)
    sys.exit(STATUS)
