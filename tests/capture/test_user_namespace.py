# SPDX-License-Identifier: Apache-2.0
"""The capture daemon as root of a user namespace, which is an ordinary user outside and cannot change to another."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import needs
from capture_link import ORDINARY, PROGRAM, finished, packets_in

ENTER = ("unshare", "--user", "--map-root-user", "--mount", "--net")
NET_RAW = 1 << 13
# Captures loopback, sends one datagram, and prints the daemon's privileges while it captures.
SCRIPT = """
ip link set lo up
"$0" -i lo --immediate -w "$1" $2 2> "$1/said" & daemon=$!
for _ in $(seq 200); do grep -q capturing "$1/said" && break; kill -0 $daemon || break; sleep 0.05; done
grep -E '^(Uid|CapPrm|CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/$daemon/status
bash -c 'echo datagram > /dev/udp/127.0.0.1/9'
sleep 0.5
kill $daemon; wait $daemon
"""


def ordinary() -> list[str]:
    """Words before a command that is run as an ordinary user."""
    return ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups"]


pytestmark = needs.marked(
    needs.root(), needs.programs("unshare", "setpriv", "bash", "ip"), needs.said_by(*ordinary(), *ENTER, "true")
)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of the ordinary user's, with a copy of the program that they may run."""
    with tempfile.TemporaryDirectory(prefix="wiretale-test-") as name:
        folder = Path(name)
        shutil.copy(PROGRAM, folder / "program")
        (folder / "captured").mkdir()
        for path in (folder, folder / "captured"):
            os.chown(path, ORDINARY, ORDINARY)
        yield folder


def capture(place: Path, *options: str) -> tuple[int, dict[str, list[str]], str]:
    """Exit code, the daemon's status while it captured, its output."""
    words = [str(place / "program"), str(place / "captured"), " ".join(options)]
    command = [*ordinary(), *ENTER, "sh", "-c", SCRIPT, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/")
    fields = dict(line.split(":", 1) for line in done.stdout.splitlines())
    return (
        done.returncode,
        {name: value.split() for name, value in fields.items()},
        (place / "captured/said").read_text(),
    )


def test_root_of_a_user_namespace_captures_with_one_capability(place: Path) -> None:
    code, fields, messages = capture(place)
    assert code == 0, messages
    assert [fields["Uid"], fields["NoNewPrivs"], fields["Seccomp"]] == [["0"] * 4, ["1"], ["2"]]
    assert [int(fields[name][0], 16) for name in ("CapPrm", "CapEff", "CapBnd")] == [NET_RAW, NET_RAW, 0]
    assert "stays root, without privileges" in messages
    files = finished(place / "captured")
    assert packets_in(*files) == 2  # the datagram and its refusal
    assert {path.stat().st_uid for path in files} == {ORDINARY}


def test_a_user_that_the_namespace_lacks_is_refused_in_one_line(place: Path) -> None:
    code, fields, messages = capture(place, "-Z", "games")
    assert code == 5 and not fields
    assert messages.splitlines()[-1].endswith(
        ": -Z games: this user namespace does not let root become another user: -Z root"
    )
    assert finished(place / "captured") == []
