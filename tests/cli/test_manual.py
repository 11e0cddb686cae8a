# SPDX-License-Identifier: Apache-2.0
"""Man pages and completions: made from the help of every command, read by groff and by the shells."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import needs
from wiretale.cli.commands import KNOWN, path_of
from wiretale.cli.manual import page_of, pages, troff, write
from wiretale.cli.programs.program_help import help_of_program
from wiretale.traffic.program import PROGRAM_OF_COMMAND, find_program

COMPLETED = [
    ("wiretale st", "store"),
    ("wiretale store w", "watch"),
    ("wiretale store watch --on", "--once"),
    ("wiretale lab up lan-to-h", "lan-to-home"),
    ("wiretale experiment run q", "quick"),
    ("wiretale analyze --cause tail-l", "tail-loss"),
    ("wiretale send --kern", "--kernel-pacing"),
    ("wiretale analyze cap", "capture.pcap"),
    ("wiretale capture.pcap --cau", "--cause"),
    ("wiretale capture.pcap --cause tail-l", "tail-loss"),
]
ASK = {
    "bash": """
source "$0/share/bash-completion/completions/wiretale"
COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_wiretale
printf '%s\\n' "${COMPREPLY[@]}"
""",
    "fish": """
source $argv[1]/share/fish/vendor_completions.d/wiretale.fish
complete -C "$argv[2..]"
""",
    "zsh": """
fpath=("$0/share/zsh/site-functions" $fpath)
autoload -Uz compinit && compinit -u -d "$0/zcompdump" && (( $+_comps[wiretale] ))
zsh -n "$0/share/zsh/site-functions/_wiretale"
""",
}


@pytest.fixture(scope="module")
def manual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("manual")
    write(place)
    return place


def test_each_command_has_a_page_that_groff_reads_without_warning(manual: Path) -> None:
    needs.skip_without(needs.programs("groff"))
    files = sorted((manual / "share/man/man1").iterdir())
    names = {file.name for file in files}
    paths = [path_of(name) for name in KNOWN if name != "explain"]
    assert {f"wiretale-{path.replace(' ', '-')}.1" for path in paths} < names
    done = subprocess.run(["groff", "-Kutf8", "-Tutf8", "-man", "-ww", "-z", *files], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""


def test_a_page_has_every_part_of_the_help() -> None:
    by_path = {page.path: page for page in pages()}
    text = troff(by_path["analyze"])
    assert "\\fB\\-\\-cause CODE\\fR" in text and ".SH EXAMPLES" in text.replace('"', "") and ".SH SYNOPSIS" in text
    assert any(entry.names.startswith("--kernel-pacing") for part in by_path["send"].sections for entry in part.entries)
    page = page_of(
        "x", "A thing.\n\nusage: x FILE\n\noptions:\n  -a, --all VALUE\n" + " " * 24 + "one\n" + " " * 24 + "two\n"
    )
    assert page.sections[0].entries == [("-a, --all VALUE", "one two")]


def test_text_without_a_heading_is_a_note() -> None:
    page = page_of("x", "A thing.\n\nusage: x FILE\n\noptions:\n  -a                    all\n\nOne.\n\nTwo.\n")
    assert [part.heading for part in page.sections] == ["options", "notes", ""]
    assert '.SH "NOTES"\n.PP\nOne.\n.PP\nTwo.\n' in troff(page)


def test_words_of_an_option_are_completed_by_a_function_of_zsh(manual: Path) -> None:
    text = (manual / "share/zsh/site-functions/_wiretale").read_text("utf-8")
    assert ":CODE:_wiretale_cause" in text and "\n_wiretale_cause() {" in text and ":_alternative" not in text
    assert "': :_wiretale_command_or_file'" in text


@pytest.mark.parametrize("name", PROGRAM_OF_COMMAND)
def test_a_c_program_prints_the_help_of_its_declaration(name: str) -> None:
    program, *first = PROGRAM_OF_COMMAND[name]
    done = subprocess.run([*first, "--help"], executable=find_program(program), capture_output=True, text=True)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", help_of_program(name))


@pytest.mark.parametrize("shell", ASK)
def test_a_shell_completes_commands_options_names_and_files(manual: Path, tmp_path: Path, shell: str) -> None:
    needs.skip_without(needs.programs(shell))
    (tmp_path / "capture.pcap").touch()
    for line, expected in COMPLETED:
        words = line.split() if shell != "fish" else [line]
        start = (
            [shell, "-c", ASK[shell], str(manual)] if shell != "zsh" else [shell, "-f", "-c", ASK[shell], str(manual)]
        )
        done = subprocess.run([*start, *words], capture_output=True, text=True, cwd=tmp_path, timeout=60)
        assert done.returncode == 0, done.stderr
        if shell == "zsh":  # its completion needs a terminal: that the script loads and is one of zsh
            break
        assert expected in [line_read.partition("\t")[0] for line_read in done.stdout.split("\n")], (line, done.stdout)
