# SPDX-License-Identifier: Apache-2.0
"""A shared library that is not installed is named with its Debian package, whichever program needs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

import needs
import wiretale.analyzer
import wiretale.reports
import wiretale.traffic
from checkout import ROOT
from wiretale import installation
from wiretale.analyzer.errors import MissingToolError
from wiretale.installation import package_of_library, repair, source_folder
from wiretale.traffic import program
from wiretale.traffic.program import find_program

WIRETALE = (sys.executable, "-m", "wiretale")
PACKAGES = {
    "libpcap.so.0.8": "libpcap0.8",
    "libzstd.so.1": "libzstd1",
    "liblz4.so.1": "liblz4-1",
    "libsodium.so.23": "libsodium23",
    "libseccomp.so.2": "libseccomp2",
    "libcap-ng.so.0": "libcap-ng0",
}
Outcome = subprocess.CompletedProcess[str]
RunWithout = Callable[..., Outcome]


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


@pytest.fixture
def run_without(tmp_path: Path) -> RunWithout:
    """Runs a command on a machine that lacks a library."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    if reason := why_not(scratch):
        pytest.skip(reason)

    def run(library: str, *command: str) -> Outcome:
        if not (library_folder() / library).exists():
            pytest.skip(f"{library} is not in {library_folder()}")
        arguments = without_libraries([library], scratch, *command)
        return subprocess.run(arguments, capture_output=True, text=True, timeout=120, cwd=tmp_path)

    return run


def line_of(program: str, library: str) -> str:
    return f"{program}: {library} is missing: apt-get install {PACKAGES[library]}\n"


@pytest.mark.parametrize("library", ["libpcap.so.0.8", "libzstd.so.1", "liblz4.so.1"])
def test_a_command_names_the_library_that_the_core_lacks(run_without: RunWithout, samples: Path, library: str) -> None:
    done = run_without(library, *WIRETALE, "analyze", str(samples / "tcp_losses.pcap"))
    assert (done.returncode, done.stdout, done.stderr) == (5, "", line_of("wiretale", library))


def test_python_names_the_library_that_the_core_lacks(run_without: RunWithout) -> None:
    code = "import wiretale\ntry: wiretale.analyze('x')\nexcept wiretale.MissingToolError as error: print(error)"
    done = run_without("libpcap.so.0.8", sys.executable, "-c", code)
    assert done.stdout == "libpcap.so.0.8 is missing: apt-get install libpcap0.8\n", done.stderr


@pytest.mark.parametrize(
    ("library", "program"),
    [
        ("libsodium.so.23", "wiretale-traffic"),
        ("libpcap.so.0.8", "wiretale-capture"),
        ("libseccomp.so.2", "wiretale-capture"),
        ("libcap-ng.so.0", "wiretale-capture"),
        ("libzstd.so.1", "wiretale-capture"),
    ],
)
def test_a_program_names_the_library_that_it_lacks(run_without: RunWithout, library: str, program: str) -> None:
    done = run_without(library, find_program(program), "--version")
    assert (done.returncode, done.stdout, done.stderr) == (5, "", line_of(program, library))


def test_a_program_names_the_library_that_its_library_lacks(run_without: RunWithout) -> None:
    done = run_without("libdbus-1.so.3", find_program("wiretale-capture"), "--version")
    assert done.returncode == 5
    assert done.stderr == "wiretale-capture: libdbus-1.so.3 is missing: apt-get install libdbus-1-3\n"


@pytest.mark.parametrize(("command", "library"), [("send", "libsodium.so.23"), ("capture", "libcap-ng.so.0")])
def test_a_command_that_is_a_program_names_its_library(run_without: RunWithout, command: str, library: str) -> None:
    done = run_without(library, *WIRETALE, command, "--version")
    assert done.returncode == 5
    assert done.stderr.endswith(f": {library} is missing: apt-get install {PACKAGES[library]}\n")
    assert done.stderr.count("\n") == 1


@needs.marked(needs.plain_processes())
@pytest.mark.parametrize(
    ("library", "names"),
    [
        ("libpcap.so.0.8", {"native core", "wiretale-capture"}),
        ("libsodium.so.23", {"native core", "wiretale-traffic"}),
    ],
)
def test_doctor_runs_each_program(run_without: RunWithout, library: str, names: set[str]) -> None:
    done = run_without(library, *WIRETALE, "doctor", "--json")
    assert done.returncode == 5, done.stderr
    missing = {check["name"]: check for check in json.loads(done.stdout)["checks"] if check["state"] == "missing"}
    assert missing.keys() == names
    for check in missing.values():
        assert check["found"].startswith(f"{library} is missing")
        assert check["remedy"] == f"apt-get install {PACKAGES[library]}"


def test_doctor_reports_a_program_that_does_not_run(tmp_path: Path) -> None:
    for name, text in {
        "wiretale-capture": "#!/bin/sh\necho 'wiretale-capture: no such device' >&2\nexit 1\n",
        "wiretale-link": "not a program",
        "wiretale-traffic": "#!/bin/sh\necho wiretale-traffic 0.0.1\n",
        "tshark": "#!/bin/sh\nexit 3\n",
    }.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "WIRETALE_PROGRAMS": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([*WIRETALE, "doctor", "--json"], capture_output=True, text=True, env=environment, timeout=120)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 5
    assert (checks["wiretale-capture"]["state"], checks["wiretale-link"]["state"]) == ("missing", "missing")
    assert checks["wiretale-capture"]["found"].startswith("no such device")
    assert checks["wiretale-link"]["found"].startswith("cannot be run: Exec format error")
    assert checks["wiretale-traffic"]["state"] == "warning"
    assert checks["wiretale-traffic"]["found"].endswith(f"expected {wiretale.__version__}")
    assert checks["tshark"]["state"] == "note" and checks["tshark"]["found"] == "--version ended with 3"
    assert {checks[name]["remedy"] for name in ("wiretale-capture", "wiretale-link")} == {repair()}


@needs.marked(needs.plain_processes())
def test_the_repair_fits_the_installation() -> None:
    folder = source_folder()
    if folder:
        assert repair() in ("make build", f"make -C {folder} build")
    else:
        *command, file = repair().split()
        assert command == [sys.executable, "-m", "pip", "install", "--force-reinstall"]
        assert Path(file).suffix == ".whl" and Path(file).is_file()


@pytest.mark.parametrize(("library", "package"), PACKAGES.items())
def test_a_package_is_named_after_its_library(library: str, package: str) -> None:
    assert package_of_library(library) == package


FROM_INDEX = re.compile(r"pip3? install(?! [^`\n]*(?:\.whl|WHEEL))[^`\n]*\bwiretale\b(?!-)")


def test_no_text_has_wiretale_installed_from_an_index() -> None:
    """The index has no such name, so a stranger could register it."""
    packages = (wiretale, wiretale.analyzer, wiretale.reports, wiretale.traffic)  # beside the tests, or installed
    folders = [ROOT / "docs", *(Path(str(package.__file__)).parent for package in packages)]
    texts = [
        path for folder in folders for kind in ("py", "md", "js", "html", "ipynb") for path in folder.rglob(f"*.{kind}")
    ]
    assert len(texts) > 200
    assert [path for path in (ROOT / "README.md", *texts) if FROM_INDEX.search(path.read_text("utf-8"))] == []


def test_a_program_of_another_debian_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian's package of the analyzer only recommends those of the C programs."""
    monkeypatch.setattr(installation, "source_folder", lambda: None)
    monkeypatch.setattr(installation, "debian_package", lambda: "wiretale")
    assert installation.repair() == "apt-get install --reinstall wiretale"
    monkeypatch.setattr(program, "program_path", lambda name: None)
    for name, package in {"wiretale-capture": "wiretale-capture", "wiretale-link": "wiretale-traffic"}.items():
        with pytest.raises(MissingToolError, match=f"{name} is missing: apt-get install --reinstall {package} "):
            program.find_program(name)
