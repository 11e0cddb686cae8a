# SPDX-License-Identifier: Apache-2.0
"""Names of system packages: Debian's, which the rest of wiretale uses, and those of dnf, pacman and Homebrew.

setup.py and .ci/packages run this file before anything is installed, so it must import nothing of wiretale.
"""

from __future__ import annotations

import platform
import shutil
import sys
from functools import cache

# Debian's name: dnf, pacman, Homebrew. Where it is the same word for all three, it is written once; "" means that none is needed.
PACKAGES: dict[str, tuple[str, str, str]] = {
    "gcc": ("gcc", "gcc", "gcc"),
    "libc6-dev": ("glibc-devel", "glibc", ""),
    "linux-libc-dev": ("kernel-headers", "linux-api-headers", ""),
    "make": ("make", "make", "make"),
    "python3-dev": ("python3-devel", "python", "python"),
    "python3-venv": ("python3", "python", "python"),
    "libpcap-dev": ("libpcap-devel", "libpcap", "libpcap"),
    "zlib1g-dev": ("zlib-devel", "zlib", "zlib"),
    "libzstd-dev": ("libzstd-devel", "zstd", "zstd"),
    "liblz4-dev": ("lz4-devel", "lz4", "lz4"),
    "libsodium-dev": ("libsodium-devel", "libsodium", "libsodium"),
    "nettle-dev": ("nettle-devel", "nettle", "nettle"),
    "libseccomp-dev": ("libseccomp-devel", "libseccomp", ""),
    "libcap-ng-dev": ("libcap-ng-devel", "libcap-ng", ""),
    "tshark": ("wireshark-cli", "wireshark-cli", "wireshark"),
    "iproute2": ("iproute", "iproute2", ""),
    "iputils-ping": ("iputils", "iputils", ""),
    "openssh-client": ("openssh-clients", "openssh", "openssh"),
    "chrony": ("chrony", "chrony", ""),
}

# Packages of shared libraries that pacman and Homebrew name otherwise than the library.
LIBRARIES = {"libz": "zlib", "libzstd": "zstd", "liblz4": "lz4", "libnettle": "nettle"}
MANAGERS = {"apt-get": "apt-get install", "dnf": "dnf install", "pacman": "pacman -S", "brew": "brew install"}
WSL = "Windows runs wiretale in WSL: run `wsl --install`, then install wiretale in its terminal as on Linux"


@cache
def manager() -> str:
    """Returns the package manager of this machine, apt-get if none is known."""
    order = ("brew", *MANAGERS) if sys.platform == "darwin" else MANAGERS
    return next((name for name in order if shutil.which(name)), "apt-get")


def install_command(*packages: str) -> str:
    """Returns the command that installs packages, given by Debian's names, with the manager of this machine."""
    name = manager()
    column = list(MANAGERS).index(name) - 1
    names = packages if column < 0 else [PACKAGES.get(package, (package,) * 3)[column] for package in packages]
    return f"{MANAGERS[name]} {' '.join(dict.fromkeys(filter(None, names)))}"


def what_works() -> tuple[str, str]:
    """Returns a state for `wiretale doctor`, and what works on this system."""
    system, machine = platform.system(), platform.machine()
    if system == "Linux":
        return "ok", f"Linux on {machine}: everything works"
    if system == "Windows":
        return "missing", WSL
    name = "macOS" if system == "Darwin" else system
    return "note", f"{name} on {machine}: analysis and reports only (untested); capturing, sending and labs need Linux"


if __name__ == "__main__":
    print(install_command(*sys.argv[1:]))
