# SPDX-License-Identifier: Apache-2.0
"""Completions for bash, zsh and fish: shtab writes them for a parser that has the commands and options of all pages.

Files and folders are completed by the placeholder of an argument (FILE, DIR), and so are profiles, plans and codes.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wiretale.cli.manual import Entry, Page

PLACES = {"bash": "bash-completion/completions/{name}", "fish": "fish/vendor_completions.d/{name}.fish"}
PLACES["zsh"] = "zsh/{folder}/_{name}"
OPTION = re.compile(r"(?:-\w|--[\w-]+)(?:, (?:-\w|--[\w-]+))*")
FOLDERS = ("DIR", "FOLDER")
FILES = ("FILE", "CAPTURE", "PATH", "OUT", "PAGE", "BEFORE", "AFTER", "KEY", "OUT.pcapng", "A", "B")
# `wiretale FILE [options]` is completed as `wiretale analyze FILE [options]`: pieces of shtab's scripts that are replaced.
WITHOUT_COMMAND = {
    "bash": {
        "complete -o bashdefault -F _shtab_wiretale wiretale": """_wiretale() {
  if ((COMP_CWORD > 1)) && [[ " ${_shtab_wiretale_subparsers[*]} " != *" ${COMP_WORDS[1]} "* ]]; then
    COMP_WORDS=("${COMP_WORDS[0]}" analyze "${COMP_WORDS[@]:1}")
    COMP_CWORD=$((COMP_CWORD + 1))
  fi
  _shtab_wiretale
}

complete -o bashdefault -o default -F _wiretale wiretale"""
    },
    "zsh": {
        "$_shtab_wiretale_view_options ;;": "$_shtab_wiretale_view_options ;;\n"
        "        *) _arguments -C -s $_shtab_wiretale_analyze_options ;;",
        "': :_shtab_wiretale_commands'": "': :_wiretale_command_or_file'",
        "_shtab_wiretale() {": "_wiretale_command_or_file() {\n  _shtab_wiretale_commands\n  _files\n}\n\n_shtab_wiretale() {",
    },
    "fish": {
        "_shtab_wiretale_scan\n  test": "_shtab_wiretale_scan\n"
        '  test -z "$_shtab_wiretale_cmdpath" -a "$_shtab_wiretale_npos" -gt 0; and set -g _shtab_wiretale_cmdpath analyze\n'
        "  test",
        "complete -c wiretale -f\n": "complete -c wiretale -f\ncomplete -c wiretale -n _shtab_wiretale_using -F\n",
    },
}
WITHOUT_OPTIONS = ("commands", "actions", "more", "signals", "exit codes")
TITLE_MOST = 60


def words_of() -> dict[str, list[str]]:
    """Returns the words for a placeholder: names of profiles and plans, codes of causes and findings."""
    from wiretale.analyzer.causes.registry import CAUSES
    from wiretale.analyzer.findings.registry import RULES
    from wiretale.traffic.experiment.plan import BUILT_IN
    from wiretale.traffic.lab.profile import profile_names

    profiles = sorted(profile_names())
    return {
        "PROFILE": profiles,
        "PLAN": sorted(BUILT_IN),
        "SCENARIO|PLAN": sorted({*profiles, *BUILT_IN}),
        "--cause": sorted(CAUSES),
        "--finding": sorted(RULES),
    }


def of_words(words: Sequence[str], kind: str) -> dict[str, Any]:
    """Returns how each shell completes one of some words, or a file if it is none."""
    name = f"_wiretale_{re.sub('[^a-z]', '', kind.lower())}"
    listed = " ".join(map(shlex.quote, words))
    return {
        "bash": name,
        "zsh": name,  # a function, because colons of its own would end the action
        "fish": f"(printf '%s\\n' {listed})",
        "preamble": {
            "bash": f'{name}() {{\n  compgen -W "{listed}" -- "$1"\n  compgen -f -- "$1"\n}}',
            "zsh": f"{name}() {{\n  _alternative 'words: :({listed})' 'files: :_files'\n}}",
        },
    }


INTERFACES = {
    "bash": "_wiretale_interface",
    "zsh": "_net_interfaces",
    "fish": "(command ls /sys/class/net)",
    "preamble": {"bash": '_wiretale_interface() {\n  compgen -W "any $(command ls /sys/class/net)" -- "$1"\n}'},
}


def completed(action: Any, value: str, words: dict[str, list[str]]) -> None:
    """Says how the value of an argument is completed, by its name or its placeholder. shtab reads that from the action."""
    import shtab

    name = next((option for option in action.option_strings if option in words), value)
    plain = value.strip("[].").removesuffix("...")
    if name in words:
        action.complete = of_words(words[name], name)
    elif "--interface" in action.option_strings:
        action.complete = INTERFACES
    elif plain in FOLDERS:
        action.complete = shtab.DIRECTORY
    elif plain in FILES:
        action.complete = shtab.FILE


def add_entry(parser: argparse.ArgumentParser, entry: Entry, words: dict[str, list[str]]) -> None:
    """Adds an option or an argument of a page."""
    text = entry.text.replace("%", "%%")
    matched = OPTION.match(entry.names)
    if not matched:
        if not entry.names.startswith("-"):
            completed(parser.add_argument(entry.names.replace(" ", "_"), nargs="*", help=text), entry.names, words)
        return
    names, value = matched[0].split(", "), entry.names[matched.end() :].strip()
    if "--help" in names:
        return
    if not value:
        parser.add_argument(*names, action="store_true", help=text)
        return
    choices = value.split("|") if re.fullmatch(r"[a-z\d]+(\|[a-z\d]+)+", value) else None
    completed(parser.add_argument(*names, metavar=value, choices=choices, help=text), value, words)


def add_entries(parser: argparse.ArgumentParser, page: Page, words: dict[str, list[str]]) -> None:
    """Adds the options and arguments of a page."""
    for section in page.sections:
        if section.heading not in WITHOUT_OPTIONS:
            for entry in section.entries:
                if entry.names != "COMMAND":
                    add_entry(parser, entry, words)


def tree(pages: Sequence[Page]) -> argparse.ArgumentParser:
    """Returns a parser with all commands."""
    words = words_of()
    by_path = {page.path: page for page in pages}
    below: dict[str, list[str]] = {}
    for path in by_path:
        if path:
            below.setdefault(path.rpartition(" ")[0], []).append(path)

    def fill(parser: argparse.ArgumentParser, page: Page) -> None:
        add_entries(parser, page, words)
        if below.get(page.path):
            commands = parser.add_subparsers(metavar="COMMAND")
            for path in below[page.path]:
                inner = by_path[path]
                title = inner.description.partition(". ")[0][:TITLE_MOST].replace("%", "%%")
                named = commands.add_parser(path.split()[-1], help=title, description=title, conflict_handler="resolve")
                fill(named, inner)

    root = argparse.ArgumentParser(
        prog="wiretale", description="Say why a transfer was slow, or what failed.", conflict_handler="resolve"
    )
    fill(root, by_path[""])
    return root


def scripts(pages: Sequence[Page]) -> dict[str, str]:
    """Returns the script for each shell by its path below share/."""
    return scripts_of(tree(pages), "wiretale", "site-functions")


def program_scripts(page: Page, program: str) -> dict[str, str]:
    """Returns those for a program that a Debian package has without wiretale."""
    parser = argparse.ArgumentParser(prog=program, description=page.description, conflict_handler="resolve")
    add_entries(parser, page, {})
    return scripts_of(parser, program, "vendor-completions")


def scripts_of(parser: argparse.ArgumentParser, name: str, folder: str) -> dict[str, str]:
    """Returns the scripts of a parser. `folder` is where zsh looks for them."""
    import shtab

    texts = {shell: shtab.complete(parser, shell) for shell in PLACES}
    for shell, changes in WITHOUT_COMMAND.items():
        for before, after in changes.items():
            texts[shell] = texts[shell].replace(before, after)
    return {place.format(name=name, folder=folder): texts[shell] for shell, place in PLACES.items()}
