# SPDX-License-Identifier: Apache-2.0
"""An SSH server of a test's own on the loopback: OpenSSH's where it is installed, else Dropbear's, which brings no service."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from processes import wait_until

SECONDS = 60
SYSTEM = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
# Dropbear takes the home folder and the shell from the system's files alone: it runs with an overlay of them.
OVERLAID = 'mount --bind "$1" /etc/passwd && mount --bind "$2" /etc/shells && shift 2 && exec "$@"'


def program_path(name: str) -> str | None:
    """The path of a program."""
    return shutil.which(name, path=SYSTEM)


def why_not() -> str | None:
    """The reason why no SSH server can run here."""
    if os.geteuid():
        return "needs root, for an SSH server"
    if not program_path("ssh-keygen") or not (
        program_path("sshd") or (program_path("dropbear") and program_path("dropbearkey"))
    ):
        return "needs an SSH server and client: .ci/packages test"
    if not program_path("sshd"):
        done = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True)
        return f"needs a mount namespace: {done.stderr.strip()}" if done.returncode else None
    return None


def openssh(folder: Path, port: int, path: str) -> list[str]:
    """The command of OpenSSH's server; `folder` holds the keys."""
    make_key(folder / "host")
    config = folder / "sshd_config"
    config.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n"
        f"StrictModes no\nUsePAM no\nPidFile none\nSetEnv PATH={path}\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    return [str(program_path("sshd")), "-D", "-e", "-f", str(config)]


def dropbear(folder: Path, port: int, path: str) -> list[str]:
    """The command of Dropbear's server."""
    home, shell, host = folder / "home", folder / "shell", str(folder / "host")
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    shutil.copy(folder / "user.pub", home / ".ssh" / "authorized_keys")
    shell.write_text(f'#!/bin/sh\nPATH={path}\nexport PATH\nexec /bin/sh "$@"\n')
    shell.chmod(0o755)
    other_accounts = Path("/etc/passwd").read_text().partition("\n")[2]
    (folder / "passwd").write_text(f"root:x:0:0:root:{home}:{shell}\n{other_accounts}")
    (folder / "shells").write_text(f"{shell}\n")
    subprocess.run([str(program_path("dropbearkey")), "-t", "ed25519", "-f", host], check=True, capture_output=True)
    overlaid = ["unshare", "--mount", "sh", "-c", OVERLAID, "sh", str(folder / "passwd"), str(folder / "shells")]
    return [*overlaid, str(program_path("dropbear")), "-F", "-E", "-s", "-r", host, "-P", "", "-p", f"127.0.0.1:{port}"]


def make_key(file: Path) -> None:
    subprocess.run([str(program_path("ssh-keygen")), "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True)


@contextlib.contextmanager
def serving(folder: Path, port: int, path: str) -> Iterator[list[str]]:
    """The server; gives the options with which `ssh` reaches it. `path` is PATH of its commands."""
    folder.mkdir(mode=0o700)
    make_key(folder / "user")
    command = (openssh if program_path("sshd") else dropbear)(folder, port, path)
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_until(lambda: server.poll() is not None or answers(port), (folder / "log").read_text)
        assert server.poll() is None, (folder / "log").read_text()
        options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"]
        yield ["-p", str(port), "-i", str(folder / "user"), *(word for option in options for word in ("-o", option))]
    finally:
        server.terminate()
        server.wait(SECONDS)


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as peer:
        return peer.recv(4) == b"SSH-"
    return False
