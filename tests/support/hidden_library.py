# SPDX-License-Identifier: Apache-2.0
"""A program's view of a machine on which shared libraries are not installed: a mount namespace without their files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import needs

# An overlay over the libraries' folder, in which those that are named are removed.
HIDE = """
set -e
scratch=$1 folder=$2 names=$3
shift 3
mount -t tmpfs tmpfs "$scratch"
mkdir "$scratch/upper" "$scratch/work"
mount -t overlay overlay -o "lowerdir=$folder,upperdir=$scratch/upper,workdir=$scratch/work" "$folder"
for name in $names; do rm -f "$folder/$name"*; done
exec "$@"
"""


@cache
def library_folder() -> Path:
    """The folder of Debian's libraries for this processor."""
    mapped = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libc.so.6" in line]
    return Path(mapped[0]).parent


def without_libraries(names: Sequence[str], scratch: Path, *command: str) -> list[str]:
    """The command that runs another where these libraries do not exist."""
    unshare = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else [])]
    return [*unshare, "sh", "-c", HIDE, "sh", str(scratch), str(library_folder()), " ".join(names), *command]


def why_not(scratch: Path) -> str | None:
    """The reason why libraries cannot be hidden here."""
    if reason := needs.first(needs.programs("unshare"), needs.proc()):
        return reason
    reason = needs.said_by(*without_libraries([], scratch, "true"))
    return f"needs a mount namespace with an overlay: {reason}" if reason else None
