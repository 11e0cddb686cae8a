# SPDX-License-Identifier: Apache-2.0
"""Builds the libraries that wheels contain, as static archives for one target, from Debian's sources in sources.toml."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tomllib
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
WHEELS = ROOT / "build" / "wheels"
SOURCES = Path(__file__).with_name("sources.toml")
CFLAGS = "-O2 -fPIC -g0"


class Target(NamedTuple):
    """A machine that wheels are built for: its name in wheels, in zig and in configure scripts."""

    machine: str
    zig: str
    host: str

    @property
    def tag(self) -> str:
        return f"manylinux_2_28_{self.machine}"

    @property
    def prefix(self) -> Path:
        return WHEELS / self.machine / "libraries"


# glibc 2.28, of Debian 10 and RHEL 8: DuckDB's wheels need it, too.
TARGETS = {
    machine: Target(machine, f"{machine}-linux-gnu.2.28", f"{machine}-linux-gnu") for machine in ("x86_64", "aarch64")
}


def zig() -> Path:
    import ziglang

    return Path(str(ziglang.__file__)).parent / "zig"


def tools(target: Target) -> dict[str, str]:
    """Returns the environment that makes configure, make and setuptools compile for a target."""
    compiler = f"{zig()} cc -target {target.zig}"
    return {
        **os.environ,
        "CC": compiler,
        "AR": f"{zig()} ar",
        "RANLIB": f"{zig()} ranlib",
        "ZIG_GLOBAL_CACHE_DIR": str(WHEELS / "zig"),
        "SOURCE_DATE_EPOCH": "0",
    }


def sources() -> list[dict[str, Any]]:
    libraries: list[dict[str, Any]] = tomllib.loads(SOURCES.read_text())["library"]
    return libraries


def run(command: list[str], log: Path, **options: Any) -> None:
    """Runs a command. If it fails, prints the end of its output."""
    with log.open("ab") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **options)
    if done.returncode:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-30:])
        raise SystemExit(f"{end}\n{command[0]} failed; its whole output is in {log}")


def fetch(address: str, file: Path) -> None:
    """Downloads a file from the mirror of this host, or from the snapshot of Debian."""
    mirror = subprocess.run([ROOT / ".ci/mirror", "Debian"], capture_output=True, text=True).stdout.strip()
    places = (mirror or "http://deb.debian.org/debian", tomllib.loads(SOURCES.read_text())["snapshot"])
    for place in places:
        try:
            with urllib.request.urlopen(f"{place}/{address}", timeout=60) as answer:
                file.write_bytes(answer.read())
            return
        except OSError as error:
            problem = error
    raise SystemExit(f"{address} cannot be downloaded: {problem}")


def unpack(library: dict[str, Any], log: Path) -> Path:
    """Downloads a source package once, and returns a folder with its patched sources."""
    package, version = library["package"], library["version"]
    letters = package[:4] if package.startswith("lib") else package[0]
    pool = f"pool/main/{letters}/{package}"
    archives = WHEELS / "sources"
    archives.mkdir(parents=True, exist_ok=True)
    dsc = archives / f"{package}_{version}.dsc"
    if not dsc.exists():
        fetch(f"{pool}/{dsc.name}", dsc)
    if (digest := hashlib.sha256(dsc.read_bytes()).hexdigest()) != library["sha256"]:
        dsc.unlink()
        raise SystemExit(f"{dsc.name} has the SHA-256 {digest}, not {library['sha256']}")
    for name in listed_files(dsc):
        if not (archives / name).exists():
            fetch(f"{pool}/{name}", archives / name)
    folder = WHEELS / "unpacked" / str(package)
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    run(["dpkg-source", "--no-copy", "-x", str(dsc), str(folder)], log)  # compares sizes and hashes
    return folder


def listed_files(dsc: Path) -> list[str]:
    """Returns the names of the files of a source package."""
    _, _, listed = dsc.read_text().partition("\nChecksums-Sha256:")
    lines = listed.splitlines()[1:]
    return [line.split()[2] for line in lines[: next(i for i, line in enumerate(lines) if not line.startswith(" "))]]


def build(library: dict[str, Any], target: Target) -> None:
    """Builds a library into the target's prefix; one that exists already at this version is kept."""
    stamp = target.prefix / "built" / library["package"]
    recipe = repr((sorted(library.items()), target, CFLAGS))
    if stamp.exists() and stamp.read_text() == recipe:
        return
    stamp.parent.mkdir(parents=True, exist_ok=True)
    print(f"    {library['package']} {library['version']} for {target.machine}", flush=True)
    log = target.prefix / "built" / f"{library['package']}.log"
    log.unlink(missing_ok=True)
    folder = unpack(library, log)
    environment = {**tools(target), "CFLAGS": CFLAGS, "CPPFLAGS": f"-I{target.prefix}/include"}
    if "configure" in library:
        if not (folder / "configure").exists():
            run(["autoreconf", "-fi"], log, cwd=folder)
        host = [f"--host={target.host}"] if library.get("host", True) else []
        command = ["./configure", f"--prefix={target.prefix}", f"--libdir={target.prefix}/lib", *host]
        run([*command, *library["configure"]], log, cwd=folder, env=environment)
    variables = [f"{name}={environment[name]}" for name in ("CC", "AR", "RANLIB")] if "configure" not in library else []
    places = [f"PREFIX={target.prefix}", f"prefix={target.prefix}"]
    run(["make", "-j2", *library["make"], *places, *variables], log, cwd=folder, env=environment)
    licenses = target.prefix / "licenses"
    licenses.mkdir(exist_ok=True)
    shutil.copyfile(folder / "debian/copyright", licenses / f"{library['package']}.txt")
    stamp.write_text(recipe)


def build_all(target: Target) -> None:
    for library in sources():
        build(library, target)
