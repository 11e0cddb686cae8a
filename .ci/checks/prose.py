# SPDX-License-Identifier: Apache-2.0
"""Reports phrases that no native speaker writes: python .ci/checks/prose.py [PATH...].

CONTRIBUTING.md, "Language", has the rules. Comments, docstrings and documents are checked, also docs/findings.md, which has the
sentences of all findings. Tests, the pages of measurements and the changelog are not.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUFFIXES = {".py", ".c", ".h", ".js", ".md"}
SKIPPED = {"build", "dist", "test", "tests", "node_modules", "__pycache__"}
MADE = {"accuracy.md", "performance.md", "studies.md", "CHANGELOG.md"}

PHRASES = (
    r"in vain",
    r"came twice",
    r"(?:is|are|was) sent again",
    r"tells? (?:of|that|apart)",
    r"told apart",
    r"nobody (?:knows|tells)",
    r"lets go of",
    r"gives? away",
    r"is taken (?:for|as)",
    r"are not taken",
    r"counts its packets anew",
    r"numbers? (?:its|the) \w+ anew",
    r"of that rate",
    r"of what",
    r"by what else",
    r"what limited each \w+ when",
    r"ask and wait",
    r"names of servers",
    r"makes? doubtful",
    r"(?:a|the) (?:file|packet|table|row) (?:tells|knows|says|asks)",
    r"mend(?:s|ed|ing)?",
    r"lies? (?:in|before|behind)",
    r"so (?:much|many) as is",
    r"the most \w+ that",
    r"in all\b(?=[.;])",
    r"a second reading",
    r"stands? (?:twice|once|there)",
)
# A phrase may continue on the next line of a comment.
PHRASE = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b".replace(" ", r"\s+(?:[*#/]+\s*)?"), re.I)
COMMENT = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.S)
CONFLICT = re.compile(r"^(?:<{7}|>{7}) .*", re.M)  # a merge left it
CODE = re.compile(r"```.*?```|`[^`]*`", re.S)
DOCSTRING_AFTER = (tokenize.INDENT, tokenize.NEWLINE, tokenize.ENCODING)


def prose_of(path: Path) -> str:
    """Returns the comments and docstrings of a file, or the text of a document without code, each on its line."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        return CODE.sub(lambda code: "`" + "\n" * code[0].count("\n"), text)
    prose = ""
    for line, part in python_prose(text) if path.suffix == ".py" else other_prose(text):
        prose += "\n" * (line - 1 - prose.count("\n")) + part
    return prose


def python_prose(text: str) -> Iterator[tuple[int, str]]:
    before = tokenize.INDENT
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and before in DOCSTRING_AFTER):
            yield token.start[0], token.string
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.type


def other_prose(text: str) -> Iterator[tuple[int, str]]:
    for comment in COMMENT.finditer(text):
        yield 1 + text.count("\n", 0, comment.start()), comment[0]


def files_of(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            folders = file.relative_to(ROOT).parts[:-1]
            skipped = any(part in SKIPPED or (part[0] == "." and part != ".ci") for part in folders)
            if file.suffix in SUFFIXES and file.name not in MADE and not skipped and file.is_file():
                yield file


def find_breaches(paths: Iterable[Path]) -> Iterator[str]:
    """Yields each phrase with its place, and each mark of a conflict."""
    for file in files_of(paths):
        prose = prose_of(file)
        for phrase in chain(PHRASE.finditer(prose), CONFLICT.finditer(prose)):
            line = 1 + prose.count("\n", 0, phrase.start())
            yield f"{file.relative_to(ROOT)}:{line}: {' '.join(phrase[0].split())}"


def main() -> int:
    """Prints the phrases; returns 1 if there are any."""
    breaches = list(find_breaches([Path(name).resolve() for name in sys.argv[1:]] or [ROOT]))
    print(*breaches, sep="\n", end="\n" if breaches else "", file=sys.stderr)
    return bool(breaches)


if __name__ == "__main__":
    sys.exit(main())
