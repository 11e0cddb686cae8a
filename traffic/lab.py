# SPDX-License-Identifier: Apache-2.0
"""Labs: made, kept and taken down."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wiretale.analyzer.errors import WiretaleError
from wiretale.traffic.lab_hosts import make_hosts, namespace_exists, processes_in, remove_hosts
from wiretale.traffic.lab_link import end_program, start_link
from wiretale.traffic.lab_profile import Profile
from wiretale.traffic.lab_state import Lab, check_name, forget_lab, known_labs, save_lab


def lab_up(profile: Profile, name: str, folder: Path | None = None, owner: int = 0) -> Lab:
    """Makes a lab; what was made is removed again when something fails."""
    check_name(name)
    if any(lab.name == name for lab in known_labs()):
        raise WiretaleError(f"the lab {name} is up already: wiretale lab down {name}")
    folder = folder or Path(tempfile.mkdtemp(prefix=f"wiretale-lab-{name}-"))
    lab = Lab(name, profile.name, profile.description, str(folder.resolve()), owner, time.time_ns())
    save_lab(lab)
    try:
        make_hosts(lab, profile)
        start_link(lab, profile, folder)
    except BaseException:
        lab_down(lab)
        raise
    return lab


def lab_down(lab: Lab) -> None:
    """Removes all that a lab made, but for the files of a run."""
    remove_hosts(lab)
    if not lab.owner and lab.folder.startswith(tempfile.gettempdir()) and "wiretale-lab-" in lab.folder:
        shutil.rmtree(lab.folder, ignore_errors=True)
    forget_lab(lab)


@contextmanager
def lab_for_run(profile: Profile, folder: Path) -> Iterator[Lab]:
    """A lab as long as the body runs; the link's truth is in the folder then."""
    lab = Lab(f"run-{os.getpid()}", profile.name, profile.description, str(folder.resolve()), os.getpid(), time.time_ns())
    save_lab(lab)
    try:
        make_hosts(lab, profile)
        link = start_link(lab, profile, folder)
        try:
            yield lab
        finally:
            end_program(link)
    finally:
        lab_down(lab)


def lab_status(lab: Lab) -> str:
    """up, or what is left of it."""
    hosts = [namespace_exists(lab, host) for host in ("sender", "tracer", "receiver")]
    if not any(hosts):
        return "gone"
    return "up" if all(hosts) and processes_in(lab) else "broken"
