"""Shared by all commands: a console for tables, and exit statuses."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def command_line(words: Sequence[str]) -> str:
    """Return the command that calls Python with `words`, without the path of Python."""
    return shlex.join(["python", *words])


def console() -> Console:
    """Return a console on standard output; files and pipes get wide, unwrapped lines."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 200
    return Console(width=width, markup=False, highlight=False, emoji=False)  # names are the user's: no markup


def exit_status(work: Callable[[], int]) -> int:
    """Do a command's work and return its exit status.

    An error that the user can correct is one sentence on standard error, and status 2.
    """
    try:
        status = work()
        sys.stdout.flush()  # here, where a closed pipe can still be caught
        return status
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130  # 128 + SIGINT, as from a shell
    except BrokenPipeError:  # the reader, perhaps `head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more
        return 1
    except (ValueError, OSError, MemoryError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
