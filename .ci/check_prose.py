# SPDX-License-Identifier: Apache-2.0
"""Checks the words of comments, docstrings and documents: python .ci/check_prose.py [--folders | PATH...].

CONTRIBUTING.md, "Language", has the rules. LIMITS are rates per 1,000 words that show whether they are kept; a C file should have
12 to 15 lines in 100 that hold a comment alone. Tests, made documents and the changelog are not counted. With --folders the
rates of each folder are printed; with PATH those of these files and folders are checked.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SUFFIXES = {".py", ".c", ".h", ".js", ".md"}
SKIPPED = {"build", "dist", "test", "tests", "node_modules", "__pycache__"}
MADE = {"accuracy.md", "performance.md", "studies.md", "CHANGELOG.md"}


class Limit(NamedTuple):
    """The least and the most occurrences of a pattern in 1,000 words."""

    name: str
    words: str
    least: float = 0.0
    most: float = 1000.0


LIMITS = (
    Limit("what", "what", most=2),
    Limit("tell", "tells?|told", most=0.3),
    Limit("nobody", "(?:no|some|any)body|whoever", most=0.1),
    Limit("lie", "lies?", most=0.1),
    Limit("is none", "is none", most=0.5),
    Limit("mend", "mend(?:s|ed|ing)?", most=0.05),
    Limit("sent again", "sent again", most=0.1),
    Limit("if", "if", least=5),
    Limit("must", "must|should", least=3),
)
COMMENTS_LEAST, COMMENTS_MOST = 12, 15  # in 100 lines of C
COMMENT = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.S)
DOCSTRING_AFTER = (tokenize.INDENT, tokenize.NEWLINE, tokenize.ENCODING)


def prose_of(path: Path) -> str:
    """Returns the comments and docstrings of a file, or the text of a document without code."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        return re.sub(r"```.*?```|`[^`]*`", " ", text, flags=re.S)
    parts = COMMENT.findall(text) if path.suffix != ".py" else python_prose(text)
    return "\n".join(part for part in parts if "SPDX" not in part)


def python_prose(text: str) -> Iterator[str]:
    before = tokenize.INDENT
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and before in DOCSTRING_AFTER):
            yield token.string
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.type


def comment_lines(path: Path) -> tuple[int, int]:
    """Returns the lines of a C file that hold a comment alone, and all lines."""
    marked = COMMENT.sub(lambda found: re.sub(r"[^\n]", "\0", found[0]), path.read_text("utf-8")).splitlines()
    return sum("\0" in line and not line.strip("\0 \t") for line in marked), len(marked)


def files_of(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            folders = file.relative_to(ROOT).parts[:-1]
            skipped = any(part in SKIPPED or (part[0] == "." and part != ".ci") for part in folders)
            if file.suffix in SUFFIXES and file.name not in MADE and not skipped and file.is_file():
                yield file


class Rates(NamedTuple):
    """The figures of some files."""

    words: int
    per_thousand: dict[str, float]
    comments: float | None  # in 100 lines of C

    def breaches(self) -> Iterator[str]:
        for limit in LIMITS:
            rate = self.per_thousand[limit.name]
            if not limit.least <= rate <= limit.most:
                bound = f"at most {limit.most:g}" if rate > limit.most else f"at least {limit.least:g}"
                yield f"{limit.name}: {rate:.2f} per 1,000 words, {bound}"
        if self.comments is not None and not COMMENTS_LEAST <= self.comments <= COMMENTS_MOST:
            yield f"comments: {self.comments:.1f} of 100 lines of C, {COMMENTS_LEAST} to {COMMENTS_MOST}"


def rates_of(paths: Iterable[Path]) -> Rates:
    files = list(files_of(paths))
    text = "\n".join(map(prose_of, files)).lower()
    words = len(re.findall(r"[a-z']+", text))
    rates = {one.name: 1000 * len(re.findall(rf"\b(?:{one.words})\b", text)) / max(words, 1) for one in LIMITS}
    lines = [comment_lines(file) for file in files if file.suffix in (".c", ".h")]
    comments = 100 * sum(own for own, _ in lines) / sum(every for _, every in lines) if lines else None
    return Rates(words, rates, comments)


def print_folders() -> None:
    """Prints a line for each folder below the root and below its folders of code."""
    deep = [
        path for parent in ("analyzer", "analyzer/core", "traffic", "reports") for path in (ROOT / parent).iterdir()
    ]
    print(f"{'':28} {'words':>6}", *(f"{limit.name:>10}" for limit in LIMITS), f"{'comments':>9}")
    for path in sorted([*ROOT.iterdir(), *(path for path in deep if path.is_dir())]):
        rates = rates_of([path]) if path.is_dir() or path.suffix in SUFFIXES else None
        if rates and rates.words:
            cells = [f"{rates.per_thousand[limit.name]:10.2f}" for limit in LIMITS]
            share = "" if rates.comments is None else f"{rates.comments:.1f}"
            print(f"{path.relative_to(ROOT)!s:28} {rates.words:6}", *cells, f"{share:>9}")


def main() -> int:
    """Prints the rates that are out of their limits; returns 1 if there are any."""
    if sys.argv[1:] == ["--folders"]:
        print_folders()
    rates = rates_of([Path(name).resolve() for name in sys.argv[1:] if name != "--folders"] or [ROOT])
    breaches = list(rates.breaches())
    print(*breaches, sep="\n", end="\n" if breaches else "", file=sys.stderr)
    return bool(breaches)


if __name__ == "__main__":
    sys.exit(main())
