# SPDX-License-Identifier: Apache-2.0
"""README.md and docs/ show what the commands print, their command lines run, and their links lead somewhere."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import document_blocks
import needs
from checkout import ROOT, Run
from document_blocks import PAGES, command_lines, console_blocks, console_commands, runnable_lines
from wiretale.cli.commands import KNOWN, routed

pytestmark = pytest.mark.skipif(not (ROOT / "README.md").is_file(), reason="no README.md beside the tests")
LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)

WIRESHARK = re.compile(r"Wireshark (\d+\.\d+)[.\d]*")


def release(lines: list[str]) -> str | None:
    """Returns the release of Wireshark whose verdicts it has."""
    expected = WIRESHARK.search("\n".join(lines))
    return expected and expected[1]


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Makes a folder for each page, with the files that its commands name."""
    return lambda page: document_blocks.make_place(tmp_path_factory.mktemp(page.stem) / "folder")


@pytest.mark.parametrize("page", [page for page in PAGES if console_blocks(page)], ids=page_name)
def test_a_page_shows_what_the_commands_print(page: Path, places: Any) -> None:
    folder = places(page)
    for block in console_blocks(page):
        for command, expected in console_commands(block):
            if "wiretale verify" in command:
                needs.skip_without(needs.programs("tshark"))
            printed = document_blocks.printed_lines(command, expected, folder)
            if release(printed) != release(expected):
                continue  # another Wireshark may judge otherwise
            printed, expected = ([WIRESHARK.sub("Wireshark", line) for line in lines] for lines in (printed, expected))
            assert printed == expected, f"python .ci/shown_output.py {page_name(page)}"


def test_the_readme_keeps_the_two_commands_of_a_fresh_machine() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert "make demo" in text
    assert "make test" in text
    assert len(text.splitlines()) <= 80


@pytest.mark.parametrize("page", [page for page in PAGES if runnable_lines(page)], ids=page_name)
def test_the_command_lines_of_a_page_run(page: Path, places: Any) -> None:
    folder = places(page)
    for line in runnable_lines(page):
        if "wiretale verify" in line:
            needs.skip_without(needs.programs("tshark"))
        if "| jq" in line and shutil.which("jq") is None:
            line = line.partition("| jq")[0]
        script = document_blocks.alone(line)
        if script is None:
            done = document_blocks.run_line(line.replace("tcpdump -i eth0 -w -", "cat transfer.pcapng"), folder)
        elif needs.user_namespaces() is None and shutil.which("ip"):
            done = document_blocks.run_line(script, folder, document_blocks.APART)
        else:
            continue
        allowed = (0, 5) if "doctor" in line else (0, 1) if "--fail-if" in line else (0,)
        assert done.returncode in allowed, f"{line}\n{done.stdout}"


def wiretale_commands() -> Iterator[tuple[str, list[str]]]:
    """Yields each command line of the documents with the words of each wiretale command in it."""
    for page in PAGES:
        expected = [command for block in console_blocks(page) for command, _ in console_commands(block)]
        for line in [*command_lines(page), *expected]:
            for words in re.findall(r"\bwiretale ([^|;&>')]*)", line):
                yield line, shlex.split(words.replace('"', ""))


def test_the_options_of_every_command_line_exist(wiretale_run: Run) -> None:
    @cache
    def help_of(*command: str) -> str:
        return str(wiretale_run(*command, "--help").stdout)

    for line, words in wiretale_commands():
        words = routed(words)
        name = words[0] if words[0] in KNOWN else "analyze"
        action = (
            words[1:2] if name in ("experiment", "lab", "store", "traffic", "cluster") and words[1][0] != "-" else []
        )
        options = [word.partition("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)]
        text = help_of(name, *action) if options else ""
        assert [option for option in options if not re.search(rf"(^|[\s,\[]){re.escape(option)}\b", text)] == [], line


def anchors(page: Path) -> set[str]:
    """Returns the anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    heads = [re.sub(r"[^\w\- ]", "", head.lower()) for head in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    return {re.sub(r"\s", "-", head.strip()) for head in heads}


@pytest.mark.skipif(not (ROOT / "Makefile").exists(), reason="not in a checkout")
def test_links_lead_to_files_and_headings() -> None:
    headings = {
        page: anchors(page) for page in [*PAGES, ROOT / "sample_pcaps" / "README.md", ROOT / "traffic" / "README.md"]
    }
    broken = []
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in LINK.findall(CODE.sub("", page.read_text("utf-8"))):
            if "://" in target or target.startswith("mailto:"):
                continue
            name, _, anchor = target.partition("#")
            file = (page.parent / name).resolve() if name else page
            if not file.exists() or (anchor and file in headings and anchor not in headings[file]):
                broken.append(f"{page_name(page)}: {target}")
    assert broken == []
