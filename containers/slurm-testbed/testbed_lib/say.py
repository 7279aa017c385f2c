"""Progress on stderr: one line a step, a sign of life every 15 s, with and without a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_START = time.monotonic()
HEARTBEAT_S = 15.0
quiet = False


def say(text: str) -> None:
    """Print one progress line with the seconds since the command began."""
    if not quiet:
        print(f"[{time.monotonic() - _START:5.1f} s] {text}", file=sys.stderr, flush=True)


@contextmanager
def step(text: str) -> Iterator[None]:
    """Announce a step that takes a while; says every 15 s that it still goes on, and how long it took."""
    say(text)
    began = time.monotonic()
    done = threading.Event()

    def beat() -> None:
        while not done.wait(HEARTBEAT_S):
            say(f"  ... {text} ({time.monotonic() - began:.0f} s so far)")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    took = time.monotonic() - began
    if took >= 3:
        say(f"  done in {took:.0f} s")
