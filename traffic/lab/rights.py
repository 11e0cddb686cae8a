# SPDX-License-Identifier: Apache-2.0
"""The right to make network namespaces: root has it, and an ordinary user inside a user namespace.

`lab run` and `lab check` enter a new user namespace, which the kernel removes with all its content. A lab that stays up
needs a process that only holds the namespace. Inside, /run must be private, because `ip netns` stores names in it.
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
from wiretale.traffic.lab.program import last_line, run_program
from wiretale.traffic.lab.state import USER, start_time, state_folder
from wiretale.traffic.program import find_program

NAMESPACES = ("--user", "--map-root-user", "--mount", "--net")
PREPARED = Path("/run/.wiretale-lab")
READY_SECONDS = 10
SYSCTL = "sysctl -w user.max_user_namespaces=10000 (and kernel.unprivileged_userns_clone=1, where there is one)"
ADVICE = f"run it as root, or allow user namespaces: {SYSCTL}"


def prepare_run() -> None:
    """Mounts a private /run with the content of the old one except the names of network namespaces."""
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
        os.rmdir(old)  # rmdir never removes content, which belongs to the system's /run
    PREPARED.touch()


def check_allowed() -> None:
    """Raises MissingToolError if the kernel refuses user namespaces."""
    command = [find_program("unshare"), *NAMESPACES, "true"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise MissingToolError(f"a lab needs root or a user namespace ({last_line(done.stderr)}): {ADVICE}")


def again() -> list[str]:
    """Returns this command once more; -P prevents imports from the working directory."""
    return [sys.executable, "-P", "-m", "wiretale", *sys.argv[1:]]


def holder_file() -> Path:
    """Returns the file that records the process that holds the namespace."""
    return state_folder().parent / "holder"


def holder() -> int | None:
    """Returns the process that holds the user's namespace, if it is alive."""
    try:
        pid, started = holder_file().read_text().split()
        return int(pid) if started and start_time(int(pid)) == started else None
    except (OSError, ValueError):
        return None


def find_holder() -> int:
    """Returns the holder, started if necessary. A lock ensures that concurrent calls start only one."""
    holder_file().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with holder_file().with_name("lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return holder() or make_holder()


def make_holder() -> int:
    """Starts the process that holds the namespace, and returns its number."""
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
        raise MissingToolError(f"a lab needs root or a user namespace that may mount: {ADVICE}")
    process.stdout.close()
    return process.pid


def end_holder() -> None:
    """Returns whether no lab needs the namespace any more."""
    pid = holder()
    inside = USER in os.environ and "WIRETALE_LAB_HOLDER" in os.environ
    if inside or pid is None:
        holder_file().unlink(missing_ok=True)
    if inside and pid is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)


def with_rights(*, keeping: bool) -> None:
    """Returns with the right to make network namespaces, in this process or in one that replaces it (execve).

    `keeping` must be true if the lab outlives this process, or if the command concerns such a lab.
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
    """Holds the namespace. It records itself, because its parent may be killed at any time."""
    prepare_run()
    holder_file().write_text(f"{os.getpid()} {start_time(os.getpid())}")
    print("holding", flush=True)
    os.close(sys.stdout.fileno())
    while os.getppid():
        time.sleep(3600)


if __name__ == "__main__":
    hold()
