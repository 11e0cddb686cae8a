# SPDX-License-Identifier: Apache-2.0
"""A script under another kernel: User-mode Linux, a process, with the files of this machine. It is for what this machine's kernel
may lack, such as the queueing discipline fq. All runs on one virtual CPU, and times are those of a busy machine."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

import needs

NEEDED = needs.first(needs.root(), needs.plain_processes(), needs.programs("linux.uml", "insmod"))
SECONDS = 90
BEGIN = """#!/bin/bash
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
# The option has a name since Linux 6.11.
mount -t hostfs -o hostfs={folder} none /mnt 2>/dev/null || mount -t hostfs -o {folder} none /mnt
cd /mnt
ip link set lo up
exec >output 2>&1
"""
END = """
sync
echo o >/proc/sysrq-trigger
sleep 10
"""


def run_script(script: str, folder: Path, *modules: str) -> str:
    """Runs a script of bash in the folder, which it can write, and returns its output; modules as `net/sched/sch_fq`."""
    loading = "".join(f"insmod /usr/lib/uml/modules/$(uname -r)/kernel/{module}.ko*\n" for module in modules)
    start = folder / "init"
    start.write_text(BEGIN.format(folder=folder) + loading + script + END)
    start.chmod(0o755)
    command = [
        "linux.uml",
        "mem=256M",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        f"init={start}",
        f"uml_dir={folder}/uml",
    ]
    done = subprocess.run(
        [*command, "con=null"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        env={**os.environ, "TMPDIR": str(folder)},
        check=False,
    )
    output = folder / "output"
    if not output.exists() and done.returncode == -signal.SIGABRT:  # its kernel panics before the script begins
        pytest.skip("User-mode Linux cannot run on this processor: its kernel panics at the first process")
    return output.read_text()
