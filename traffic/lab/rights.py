# SPDX-License-Identifier: Apache-2.0
"""The right to make network namespaces: root has it, and an ordinary user in a user namespace.

`lab run` and `lab check` enter a new user namespace, which ends with everything in it. A lab that stays up needs one that
stays: a process that only holds it. In it /run is private, because `ip netns` keeps its names there. The names of the network
namespaces exist only inside; if the holder is gone, a lab can no longer be entered. Its programs still run, and once the last
has ended, the kernel removes the rest.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from wiretale.analyzer.errors import MissingToolError
from wiretale.traffic.lab.process import end_all, last_line, run_program
from wiretale.traffic.lab.state import USER, Lab, own_space, start_time, state_folder
from wiretale.traffic.program import find_program

NAMESPACES = ("--user", "--map-root-user", "--mount", "--net")
PREPARED = Path("/run/.wiretale-lab")
READY_SECONDS = 10
SYSCTL = "sysctl -w user.max_user_namespaces=10000 (and kernel.unprivileged_userns_clone=1, where there is one)"
FIX = f"run as root, or allow user namespaces: {SYSCTL}"
END_SECONDS = 3.0  # from SIGTERM to SIGKILL


def prepare_run() -> None:
    """Mounts a private /run with everything of the old one except the names of network namespaces."""
    if PREPARED.exists():
        return
    old = tempfile.mkdtemp(prefix="wiretale-run-")
    run_program(["mount", "--rbind", "/run", old])
    try:
        run_program(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"])
        for entry in Path(old).iterdir():
            if entry.is_dir() and not entry.is_symlink() and entry.name != "netns":
                Path("/run", entry.name).mkdir(exist_ok=True)
                subprocess.run(["mount", "--rbind", str(entry), f"/run/{entry.name}"], capture_output=True)
    finally:
        run_program(["umount", "-l", old])
        os.rmdir(old)  # must never remove its content, which is the /run of the system
    PREPARED.touch()


def check_allowed() -> None:
    """Raises MissingToolError if this kernel allows no user namespace."""
    command = [find_program("unshare"), *NAMESPACES, "true"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise MissingToolError(f"a lab needs root or a user namespace ({last_line(done.stderr)}): {FIX}")


def again() -> list[str]:
    """Returns this command line. -P keeps Python from importing modules of the current directory."""
    return [sys.executable, "-P", "-m", "wiretale", *sys.argv[1:]]


def holder_file() -> Path:
    """Returns the file with the process that holds the namespace."""
    return state_folder().parent / "holder"


def holder() -> int | None:
    """Returns the process that holds the namespace of this user, or None if it does not run."""
    try:
        pid, started = holder_file().read_text().split()
        return int(pid) if started and start_time(int(pid)) == started else None
    except (OSError, ValueError):
        return None


def find_holder() -> int:
    """Returns the holder and starts it if it does not run. A lock keeps two commands from starting two."""
    holder_file().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with holder_file().with_name("lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return holder() or make_holder()


def make_holder() -> int:
    """Starts the holder and returns its process."""
    check_allowed()
    command = [find_program("unshare"), *NAMESPACES, sys.executable, "-P", "-m", "wiretale.traffic.lab.rights"]
    environment = {**os.environ, USER: str(os.getuid())}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=environment,
    )
    assert process.stdout
    if process.stdout.readline().strip() != b"holding":
        raise MissingToolError(f"a lab needs root or a user namespace with mount rights: {FIX}")
    process.stdout.close()
    return process.pid


def end_holder() -> None:
    """Ends the holder, because no lab is left."""
    pid = holder()
    inside = USER in os.environ and "WIRETALE_LAB_HOLDER" in os.environ
    if inside or pid is None:
        holder_file().unlink(missing_ok=True)
    if inside and pid is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)


def is_elsewhere(lab: Lab) -> bool:
    """Returns whether the lab is in another user namespace than this process."""
    return lab.space not in (0, own_space())


def is_marked(pid: int) -> bool:
    """Returns whether a process belongs to a lab, because the kernel reuses the numbers of namespaces."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return any(word.startswith(f"{USER}=".encode()) for word in file.read().split(b"\0"))
    except OSError:
        return False


def processes_of(space: int) -> list[int]:
    """Returns the processes in a user namespace, or none if it is not a lab's."""
    processes = []
    for entry in os.listdir("/proc"):
        with suppress(OSError):
            if entry.isdecimal() and os.stat(f"/proc/{entry}/ns/user").st_ino == space:
                processes.append(int(entry))
    return processes if any(map(is_marked, processes)) else []


def end_space(space: int) -> None:
    """Ends the processes in a user namespace."""
    end_all(lambda: processes_of(space), END_SECONDS)


def with_rights(*, keeping: bool) -> None:
    """Gets the right to make network namespaces, for this process or for one that replaces it.

    `keeping` must be set if a lab outlives this process, or if the command works on such a lab.
    """
    if USER in os.environ and os.geteuid() == 0:
        prepare_run()
        return
    if os.geteuid() == 0:
        return
    environment = {**os.environ, USER: str(os.getuid())}
    sys.stdout.flush()
    if not keeping:
        check_allowed()
        unshare = find_program("unshare")
        os.execve(unshare, [unshare, *NAMESPACES, *again()], environment)
    pid = holder()
    if pid is None and "up" not in sys.argv[1:]:
        return
    nsenter = find_program("nsenter")
    environment["WIRETALE_LAB_HOLDER"] = "1"
    options = ["-t", str(pid or find_holder()), "--user", "--mount", "--net", "--preserve-credentials"]
    os.execve(nsenter, [nsenter, *options, f"--wd={os.getcwd()}", *again()], environment)


def hold() -> None:
    """Runs the holder. It must record itself, because the process that started it may be killed meanwhile."""
    prepare_run()
    holder_file().write_text(f"{os.getpid()} {start_time(os.getpid())}")
    print("holding", flush=True)
    os.close(sys.stdout.fileno())
    while os.getppid():
        time.sleep(3600)


if __name__ == "__main__":
    hold()
