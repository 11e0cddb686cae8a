# SPDX-License-Identifier: Apache-2.0
"""Makes and removes labs. A lab is recorded before it is made, so that `lab down` finds it after a crash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import MissingToolError, WiretaleError
from wiretale.traffic.lab.hosts import check_free, namespace_exists, processes_in, remove_hosts
from wiretale.traffic.lab.link import check_ended_well, has_truths, make_folder, start_links, write_truths
from wiretale.traffic.lab.process import end_program
from wiretale.traffic.lab.profile import Profile, link_bps
from wiretale.traffic.lab.rights import end_space, is_elsewhere, processes_of
from wiretale.traffic.lab.state import (
    Lab,
    TakenError,
    check_name,
    forget_lab,
    known_labs,
    mark_ending,
    save_lab,
    start_time,
)
from wiretale.traffic.lab.topology.network import make_network


class LabRemovedError(MissingToolError):
    """The hosts of a run disappeared before its end."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the lab {name} was removed while it was in use (`lab down --force`, or `ip netns delete`)")


def write_down(lab: Lab) -> None:
    """Records a lab before it is made. TakenError if the name is in use; nothing of the other lab is removed."""
    try:
        save_lab(lab)
        try:
            check_free(lab)
        except TakenError:
            forget_lab(lab)
            raise
    except WiretaleError:
        remove_folder(lab)
        raise


def new_lab(name: str, profile: Profile, folder: Path, **more: Any) -> Lab:
    hosts, hops = ([node.name for node in kind] for kind in (profile.topology.hosts, profile.topology.hops))
    bps = 0 if hosts else link_bps(profile) or 0  # packets of other hosts may not cross the link
    place = str(folder.resolve())
    return Lab(name, profile.name, profile.description, place, link_bps=bps, hosts=hosts, hops=hops, **more)


def lab_up(profile: Profile, name: str, folder: Path | None = None) -> Lab:
    """Makes a lab. If a step fails, everything that was made is removed."""
    check_name(name)
    place = folder or Path(tempfile.mkdtemp(prefix=f"wiretale-lab-{name}-"))
    lab = new_lab(name, profile, place, keeps=folder is not None)
    write_down(lab)
    try:
        make_network(lab, profile)
        make_folder(place)
        start_links(lab, profile, place)
    except BaseException:
        lab_down(lab)
        raise
    return lab


def remove_folder(lab: Lab) -> None:
    """Removes the temporary directory of a lab; one that the user chose stays."""
    if not lab.keeps and Path(lab.folder).name.startswith("wiretale-lab-"):
        shutil.rmtree(lab.folder, ignore_errors=True)


def lab_down(lab: Lab) -> None:
    """Removes everything that a lab made except the files of a run."""
    if lab.is_in_use and lab.owner != os.getpid():
        mark_ending(lab)
    if is_elsewhere(lab):
        end_space(lab.space)
    remove_hosts(lab)
    forget_lab(lab)
    remove_folder(lab)
    folder = Path(lab.folder)
    if lab.keeps and not lab.owner and has_truths(lab, folder):
        check_ended_well(lab, folder)
        write_truths(lab, folder)


def start_watcher(lab: Lab) -> subprocess.Popen[bytes]:
    """Starts a process that removes the lab if this process ends for any reason. It has its own session, and waits only for the
    end of its standard input."""
    command = [sys.executable, "-P", "-m", "wiretale.traffic.lab.watch", lab.name, str(lab.created_ns)]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def check_whole(lab: Lab) -> None:
    """Raises LabRemovedError if another process removed the lab or some of its hosts."""
    written = [recorded for recorded in known_labs() if recorded.name == lab.name and not recorded.is_ending]
    if not written or not all(namespace_exists(lab, host) for host in lab.spaces):
        raise LabRemovedError(lab.name)


@contextmanager
def lab_for_run(profile: Profile, folder: Path) -> Iterator[Lab]:
    """Makes a lab for the body. Afterwards the truth of the link is in `folder`."""
    owner = os.getpid()
    lab = new_lab(f"run-{owner}", profile, folder, owner=owner, owner_start=start_time(owner))
    for dead in known_labs():
        if dead.name == lab.name:  # the kernel reused the number of its process
            lab_down(dead)
    write_down(lab)
    watcher = start_watcher(lab)
    try:
        make_network(lab, profile)
        try:
            links = start_links(lab, profile, folder)
            try:
                yield lab
            finally:
                for link in links:
                    end_program(link)
        except WiretaleError:
            check_whole(lab)  # the removal of the lab may have caused the error
            raise
        check_whole(lab)
        check_ended_well(lab, folder)
    finally:
        lab_down(lab)
        watcher.communicate()  # closes its standard input: the lab is down


def lab_status(lab: Lab) -> str:
    """Returns up, broken or gone."""
    if is_elsewhere(lab):
        if not processes_of(lab.space):
            return "gone"
        return "up" if lab.owner and Path(f"/proc/{lab.owner}").exists() else "broken"
    hosts = [namespace_exists(lab, host) for host in lab.spaces]
    if not any(hosts):
        return "gone"
    return "up" if all(hosts) and processes_in(lab) else "broken"
