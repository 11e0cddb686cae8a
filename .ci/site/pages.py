# SPDX-License-Identifier: Apache-2.0
"""A hook of MkDocs: pages of the site that are not in docs/, links that leave docs/, and the help of every command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from wiretale.cli.commands import COMMANDS, MORE

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: Documents beside docs/, and the page that each becomes.
MOVED = {
    "sample_pcaps/README.md": "samples.md",
    "traffic/README.md": "block-header.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "README.md": "index.md",
}
OWN_FILES = ("wide.css", "iframe-worker.js")
ACTION = re.compile(r"^  ([a-z]+) ", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the documents beside docs/, and the files of the site itself."""
    for source, name in MOVED.items():
        if name != "index.md":
            files.append(File.generated(config, name, content=(ROOT / source).read_text("utf-8")))
    for name in OWN_FILES:
        files.append(File.generated(config, f"site/{name}", content=(Path(__file__).parent / name).read_text("utf-8")))
    return files


def source_of(page_uri: str) -> Path:
    """Returns the document from which a page is made."""
    sources = {name: source for source, name in MOVED.items() if name != "index.md"}
    return ROOT / sources[page_uri] if page_uri in sources else DOCS / page_uri


def site_link(text: str, target: str, page_uri: str) -> str:
    """Returns a link as the site needs it; one to a file that the site does not have becomes its path."""
    if "://" in target or target.startswith(("#", "mailto:")):
        return f"[{text}]({target})"
    name, mark, anchor = target.partition("#")
    file = (source_of(page_uri).parent / name).resolve()
    inside = file.relative_to(ROOT).as_posix().removesuffix("/")
    inside = MOVED.get(inside if file.suffix else f"{inside}/README.md", inside)
    if inside.startswith("docs/"):
        inside = inside.removeprefix("docs/")
    elif inside not in MOVED.values():
        return text if text.startswith("`") else f"`{inside}`"
    return f"[{text}]({os.path.relpath(inside, Path(page_uri).parent)}{mark}{anchor})"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites the links of a page outside its code, and adds the help to the page of commands."""
    uri = page.file.src_uri
    if uri == "commands.md":
        markdown += help_sections()
    parts = CODE.split(markdown)
    parts[::2] = [LINK.sub(lambda link: site_link(link[1], link[2], uri), part) for part in parts[::2]]
    return "".join(parts)


def help_text(command: str) -> str:
    """Returns what `wiretale help COMMAND` prints on 80 columns."""
    done = subprocess.run(
        [sys.executable, "-m", "wiretale", "help", *command.split()],
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def actions_of(command: str, text: str) -> list[str]:
    """Returns the actions of a command, with the command's name."""
    listed = re.search(r"\n(?:actions|commands):\n(.*?)\n\n", text, re.DOTALL)
    return [f"{command} {action}" for action in ACTION.findall(listed[1])] if listed else []


def help_sections() -> str:
    """Returns the help of every command and of its actions, as sections."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        commands = (*COMMANDS, *MORE)
        texts = dict(zip(commands, pool.map(help_text, commands), strict=True))
        actions = [action for command, text in texts.items() for action in actions_of(command, text)]
        texts |= zip(actions, pool.map(help_text, actions), strict=True)
    return "".join(
        f"\n{'###' if ' ' in name else '##'} {name}\n\n```text\n{texts[name]}\n```\n" for name in sorted(texts)
    )
