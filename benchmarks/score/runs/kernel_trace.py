# SPDX-License-Identifier: Apache-2.0
"""Causes of retransmissions by the sender's kernel: the tracepoint tcp:tcp_retransmit_skb with its call stack.

The trace must be complete, because causes are matched to packets by their order. If an event was lost, the trace is not used.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

EVENTS = ("tcp_retransmit_skb", "tcp_cong_state_set")
LOSS_STATE = 4  # TCP_CA_Loss
# Function on the stack, and the cause that it stands for. In the state Loss, tcp_xmit_retransmit_queue continues a timeout.
DECIDERS = {
    "tcp_send_loss_probe": "probe",
    "tcp_retransmit_timer": "timeout",
    "tcp_xmit_retransmit_queue": "fast",
}


class Resend(NamedTuple):
    """A retransmission of the kernel."""

    port: int  # the sender's
    cause: str | None  # fast, timeout, probe or other; None if there is no stack


def start(stack: ExitStack) -> Path:
    """Starts the trace and returns its folder. Raises OSError or CalledProcessError if the kernel offers none."""
    root = Path("/sys/kernel/tracing")
    if not (root / "instances").is_dir():
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wtacc")))
        subprocess.run(["mount", "-t", "tracefs", "none", root], check=True, capture_output=True)
        stack.callback(lambda: subprocess.run(["umount", root], capture_output=True))
    instance = root / "instances" / f"wtacc{os.getpid()}"
    instance.mkdir()
    stack.callback(instance.rmdir)
    (instance / "buffer_size_kb").write_text("16384")
    (instance / "options" / "stacktrace").write_text("1")
    for event in EVENTS:
        (instance / "events" / "tcp" / event / "enable").write_text("1")
    return instance


@contextmanager
def kernel_trace(file: Path) -> Iterator[None]:
    """Records the events to a file. If the kernel offers no tracefs, it writes no file."""
    with ExitStack() as stack:
        instance = None
        with suppress(OSError, subprocess.CalledProcessError):
            instance = start(stack)
        yield
        if instance:
            (instance / "tracing_on").write_text("0")
            file.write_text((instance / "trace").read_text())


def read_events(text: str) -> Iterator[tuple[str, dict[str, str], list[str]]]:
    """Yields name, members and call stack of each event."""
    name, members, stack = "", dict[str, str](), list[str]()
    for line in text.splitlines():
        if line.startswith(" => "):
            stack.append(re.split(r"[+.]", line[4:].strip())[0])
        elif match := re.search(r": (tcp_\w+): (.*)$", line):
            if name:
                yield name, members, stack
            name, stack = match[1], []
            members = dict(part.split("=", 1) for part in match[2].split() if "=" in part)
    if name:
        yield name, members, stack


def read_resends(file: Path, address: str) -> list[Resend] | None:
    """Returns the retransmissions of a host in order, None if the trace is missing or has lost events."""
    if not file.exists():
        return None
    text = file.read_text()
    written = re.search(r"entries-in-buffer/entries-written: (\d+)/(\d+)", text)
    if not written or written[1] != written[2]:
        return None
    states: dict[int, int] = {}
    resends = []
    for name, members, stack in read_events(text):
        if members.get("saddr") != address:
            continue
        port = int(members["sport"])
        if name == "tcp_cong_state_set":
            states[port] = int(members["cong_state"])
        elif members.get("err", "0") == "0":
            decider = next((called for called in stack if called in DECIDERS), "")
            cause = DECIDERS.get(decider, "other") if stack else None
            if cause == "fast" and states.get(port) == LOSS_STATE:
                cause = "timeout"
            resends.append(Resend(port, cause))
    return resends
