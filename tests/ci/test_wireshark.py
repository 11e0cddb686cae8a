# SPDX-License-Identifier: Apache-2.0
"""`.ci/wireshark` runs a command with tshark of Debian 13 or newer, or says why that of the host is the yardstick."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import needs
from checkout import ROOT

SCRIPT = ROOT / ".ci" / "wireshark"
UNPACKED = ROOT / "build" / "wireshark" / "bin" / "tshark"
PRINT = ("bash", "-c", 'tshark --version | head -n 1; echo "${HOST_WIRESHARK:-none}"')

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="no .ci/ beside the tests")


def run_with(folder: Path, version: str, apt: str = "exit 1") -> subprocess.CompletedProcess[str]:
    """Runs it in a folder of its own, on a host with this tshark and this script as apt-get."""
    programs = folder / "programs"
    for name in (".ci", "programs"):
        (folder / name).mkdir()
    for name in ("wireshark", "step", "mirror"):
        shutil.copy(ROOT / ".ci" / name, folder / ".ci")
    for name, text in (("tshark", f'echo "TShark (Wireshark) {version} (Git v{version})."'), ("apt-get", apt)):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    command = [".ci/wireshark", *PRINT]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("version", ["4.4.0", "4.10.2", "5.0.0"])
def test_a_host_with_a_new_tshark_needs_no_other(version: str, tmp_path: Path) -> None:
    done = run_with(tmp_path, version)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"TShark (Wireshark) {version} (Git v{version}).\nnone\n"
    assert not (tmp_path / "build").exists()


@pytest.mark.parametrize("version", ["4.0.17", "3.6.2"])
@pytest.mark.parametrize("apt", ["exit 1", "echo 'Debian|Debian|http://mirror.invalid/'; test $1 = indextargets"])
def test_without_a_network_the_host_is_the_yardstick_and_a_line_says_why(
    version: str, apt: str, tmp_path: Path
) -> None:
    done = run_with(tmp_path, version, apt)
    assert done.returncode == 0 and done.stdout.endswith(f"TShark (Wireshark) {version} (Git v{version}).\nnone\n")
    reason = "wireshark: Debian's trixie could not be downloaded: the yardstick is tshark"
    assert done.stderr.endswith(f"{reason} {version} of this host\n")


def test_the_unpacked_tshark_has_its_own_libraries_and_reads_a_capture() -> None:
    needs.skip_without(None if UNPACKED.exists() else "no build/wireshark: `.ci/wireshark true` downloads it")
    done = subprocess.run([SCRIPT, *PRINT], cwd=ROOT, capture_output=True, text=True, timeout=60)
    first, host = done.stdout.splitlines()
    assert first.startswith("TShark (Wireshark) 4.4") and host != "none"
    capture = ROOT / "sample_pcaps" / "fast_retransmissions.pcap"
    command = [
        UNPACKED,
        "-n",
        "-r",
        capture,
        "-Y",
        "tcp.analysis.fast_retransmission",
        "-T",
        "fields",
        "-e",
        "frame.number",
    ]
    traced = subprocess.run(
        command, env={**os.environ, "LD_DEBUG": "files"}, capture_output=True, text=True, timeout=60
    )
    assert traced.returncode == 0 and traced.stdout.split() == ["65", "154", "252", "343", "442", "531"]
    libraries = [
        line.rpartition("calling init: ")[2] for line in traced.stderr.splitlines() if "calling init: " in line
    ]
    root = str(ROOT / "build" / "wireshark" / "root")
    begin = next(number for number, name in enumerate(libraries) if name.startswith(root))  # the shell's are before it
    assert len(libraries) > begin + 20 and all(name.startswith(root) for name in libraries[begin:])
