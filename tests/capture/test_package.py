# SPDX-License-Identifier: Apache-2.0
"""wiretale-capture as a service: installation, unit, man page, completions (make deb-check tests the Debian packages)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import needs
from capture_link import PROGRAM, missing
from checkout import ROOT
from processes import output
from wiretale.version import __version__

pytestmark = pytest.mark.xdist_group("package")

CAPTURE = ROOT / "capture"
OBJECTS = ROOT / "build" / "wiretale-capture"
INSTALLED = (
    "usr/bin/wiretale-capture",
    "usr/share/man/man8/wiretale-capture.8",
    "lib/systemd/system/wiretale-capture.service",
    "etc/default/wiretale-capture",
    "lib/systemd/system-generators/wiretale-capture-generator",
    "lib/systemd/system/wiretale-metrics.service",
    "lib/systemd/system/wiretale-metrics.timer",
    "usr/share/doc/wiretale-capture/examples/wiretale.rules.yml",
)

COMPLETIONS = {
    "bash": "share/bash-completion/completions/wiretale-capture",
    "zsh": "share/zsh/vendor-completions/_wiretale-capture",
    "fish": "share/fish/vendor_completions.d/wiretale-capture.fish",
}
BASH_COMPLETES = """
source "$0"
for words in "--ring" "-i l" "--direction in"; do
    COMP_WORDS=(wiretale-capture $words); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMP_LINE="${COMP_WORDS[*]}" COMP_POINT=${#COMP_LINE}
    _shtab_wiretale_capture
    echo "${COMPREPLY[@]}"
done
"""


def apart(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Arguments of a build that does not touch the program under test; it begins with copies of the objects of `make build`."""
    folder = tmp_path_factory.getbasetemp() / "apart"
    if OBJECTS.is_dir() and not folder.exists():
        shutil.copytree(OBJECTS, folder / "build", copy_function=shutil.copy2)
    return f"PROGRAM={folder}/wiretale-capture", f"BUILD={folder}/build", "CFLAGS=-Werror"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that `make install` puts into an empty system."""
    needs.skip_without(missing(), None if CAPTURE.is_dir() else "needs the sources", needs.programs("make"))
    root = tmp_path_factory.mktemp("root")
    places = (f"DESTDIR={root}", "PREFIX=/usr", "UNITDIR=/lib/systemd/system")
    output("make", "-s", "-C", str(CAPTURE), "install", *places, *apart(tmp_path_factory))
    return root


def test_everything_is_installed_with_its_places_filled_in(root: Path) -> None:
    for path in INSTALLED:
        file = root / path
        assert file.is_file() and not file.stat().st_mode & 0o022
    unit = (root / INSTALLED[2]).read_text()
    assert "ExecStart=/usr/bin/wiretale-capture --wait $OPTIONS" in unit and "@" not in unit.replace(
        "@system-service", ""
    ).replace("@resources", "").replace("@privileged", "")
    assert output(str(root / INSTALLED[0]), "--version") == f"wiretale-capture {__version__}\n"


def test_the_unit_is_sandboxed(root: Path) -> None:
    needs.skip_without(needs.programs("systemd-analyze"))
    messages = output("systemd-analyze", "security", "--offline=true", "--threshold=20", str(root / INSTALLED[2]))
    exposure = re.search(r"exposure level for .*: ([\d.]+)", messages)
    assert exposure and float(exposure[1]) <= 2.0


def generate(root: Path, to: Path, defined: str) -> tuple[str, str]:
    """Files of systemd's generator for a line of the defaults file, and its messages."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir()
    defaults = to / "defaults"
    defaults.write_text(f"# a comment\n{defined}\n")
    script = (root / INSTALLED[4]).read_text()
    assert "/etc/default/wiretale-capture" in script
    (to / "generator").write_text(script.replace("/etc/default/wiretale-capture", str(defaults)))
    done = subprocess.run(["sh", str(to / "generator"), str(to)], capture_output=True, text=True, timeout=60)
    assert not done.returncode
    made = to / "wiretale-capture.service.d" / "50-directory.conf"
    return made.read_text() if made.exists() else "", done.stderr


def generated(root: Path, to: Path, options: str) -> str:
    return generate(root, to, f"OPTIONS={options}")[0]


@pytest.mark.parametrize(
    "options, folder",
    [
        ('"-i any -w /srv/captures -C 64MB"', "/srv/captures"),
        ("'-i eth0 --write=/mnt/disk/%Y%m%d.pcapng -G 1h'", "/mnt/disk"),
        ("-i eth0 -w/srv/a/x.pcapng -w /srv/b/", "/srv/b/"),
        ("-i eth0 -pw /srv/captures", "/srv/captures"),
        ("-i eth0 -zpw/srv/captures/x.pcapng", "/srv/captures"),
        ('"-i eth0 \\\n   -w /srv/captures"', "/srv/captures"),
        ('"-i eth0 -w -"', None),
        ('"-i eth0"', None),
        ('"-w /srv/a;b"', None),  # nothing that a unit would take for something else
    ],
)
def test_the_unit_waits_for_the_disk_of_the_folder(
    root: Path, tmp_path: Path, options: str, folder: str | None
) -> None:
    made = generated(root, tmp_path / "units", options)
    assert (f"RequiresMountsFor={folder}\n" in made and f"ReadWritePaths=-{folder}\n" in made) if folder else not made


def test_options_are_read_as_systemd_reads_them(root: Path, tmp_path: Path) -> None:
    made, messages = generate(root, tmp_path / "units", '  OPTIONS = "-i any -w /srv/captures"')
    assert "RequiresMountsFor=/srv/captures\n" in made and not messages


@pytest.mark.parametrize(
    "options, messages",
    [
        ('"-w /srv/a;b"', "/srv/a;b: expected letters, digits"),
        ("-w /srv/../captures", "/srv/../captures: expected a path without . and .."),
        ("-w captures", "captures: expected a path that begins with /"),
        ("-w /x.pcapng", "/: expected another directory than /"),
        ('"-i eth0\n-w /srv/captures"', "expected another at the end of the line"),
    ],
)
def test_a_folder_that_no_unit_can_wait_for_is_named(root: Path, tmp_path: Path, options: str, messages: str) -> None:
    made, errors = generate(root, tmp_path / "units", f"OPTIONS={options}")
    assert not made and messages in errors and errors.count("\n") == 1


def test_the_unit_is_valid_and_never_gives_up(root: Path, tmp_path: Path) -> None:
    unit = (root / INSTALLED[2]).read_text()
    lines = unit.splitlines()
    assert {"StartLimitIntervalSec=0", "Restart=on-failure", "RestartPreventExitStatus=1 2 3"} <= set(lines)
    needs.skip_without(needs.programs("systemd-analyze"))
    units = tmp_path / "units"
    assert generated(root, units, '"-i any -w /srv/captures"')
    file = units / "wiretale-capture.service"
    file.write_text(unit.replace("/usr/bin/wiretale-capture", str(PROGRAM)))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{units}:"},
    )
    newer = re.compile(r"Unknown key '(RestartSteps|RestartMaxDelaySec)' in section \[Service\], ignoring")
    messages = [line for line in done.stderr.splitlines() if str(units) in line or "wiretale" in line]
    assert not [line for line in messages if not newer.search(line)]


def test_the_man_page_has_every_option(root: Path) -> None:
    page = (root / INSTALLED[1]).read_text().replace("\\-", "-")
    options = set(re.findall(r"(?<![\w-])--[a-z-]+", output(str(PROGRAM), "--help")))
    assert len(options) > 15
    assert not {option for option in options if option not in page}
    if shutil.which("groff"):
        command = ["groff", "-mandoc", "-Tutf8", "-ww", "-P-bou", "-rLL=78n", str(root / INSTALLED[1])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert not done.stderr and "SYNOPSIS" in done.stdout


def test_the_program_completes_in_shells(tmp_path: Path) -> None:
    output(sys.executable, "-m", "wiretale.cli.manual", str(tmp_path), "capture")
    scripts = {shell: tmp_path / path for shell, path in COMPLETIONS.items()}
    done = output("bash", "-c", BASH_COMPLETES, str(scripts["bash"]))
    assert done.splitlines() == ["--ring-buffer", "lo", "in inout"]
    if shutil.which("fish"):
        script = f"source {scripts['fish']}; complete -C 'wiretale-capture --ring'; complete -C 'wiretale-capture -i l'"
        done = output("fish", "-c", script)
        assert [line.partition("\t")[0] for line in done.splitlines()] == ["--ring-buffer", "lo"]
    if shutil.which("zsh"):
        assert output("zsh", "-fn", str(scripts["zsh"])) == ""
        assert scripts["zsh"].read_text().startswith("#compdef wiretale-capture\n")
