# SPDX-License-Identifier: Apache-2.0
"""Makes the sections of docs/tables.md from the schemas, of docs/findings.md and docs/causes.md from their rules, and the reasons
in docs/verdicts.md; examples.json of findings and of causes from captures; and analyzer/rows.py from the schemas.

python .ci/make_docs.py [--check]. Text before the mark is kept, and text behind a second mark.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any

from cause_examples import examples as cause_examples
from finding_examples import examples
from json_schemas import schema_texts
from row_types import Column, module_text

from wiretale.analyzer import _core
from wiretale.analyzer.causes.cause import Cause
from wiretale.analyzer.causes.registry import CHAPTERS as CAUSES_BY_FAMILY
from wiretale.analyzer.findings.registry import CHAPTERS, Page
from wiretale.analyzer.verify.case import RETRANSMISSIONS
from wiretale.analyzer.verify.reasons import RULES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

MADE = "<!-- made by .ci/make_docs.py -->\n"  # everything below this line
END = "<!-- end of the made part -->\n"  # or up to this one


def column_line(column: Column) -> str:
    name, kind, unit, meaning = (cell.replace("|", "\\|") for cell in column[:4])
    return f"| `{name}` | {kind} | {unit} | {meaning} |"


def table_section(name: str, row: str, columns: list[Column]) -> str:
    head = [f"## {name}", "", f"A row is {row}.", "", "| column | type | unit | meaning |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *map(column_line, columns), ""])


EXAMPLES = ROOT / "analyzer" / "findings" / "examples.json"
CAUSE_EXAMPLES = ROOT / "analyzer" / "causes" / "examples.json"
JSON_SCHEMAS = ROOT / "reports" / "export" / "schemas"
ROW_TYPES = ROOT / "analyzer" / "rows.py"
Examples = dict[str, dict[str, str]]


def example_text(example: dict[str, str] | None) -> str:
    """Returns the example of a finding, with its severity and cost."""
    if example is None:
        return "*Example:* none."
    facts = ", ".join(filter(None, (example["severity"], example["cost"])))
    return f"*Example* ({example['capture']}; {facts}): {example['sentence']}"


def finding_section(page: Page, captures: Examples) -> str:
    parts = [f"### {page.code}", f"**{page.title}** ({page.severity}). {page.computed}", f"*Unknown:* {page.unknown}"]
    if page.layer != "on the wire":
        parts.append(f"*Layer of the cost:* bytes {page.layer}")
    if page.weakens:
        parts.append(f"*Affects:* {page.weakens}")
    parts.append(example_text(captures.get(page.code)))
    return "\n\n".join([*parts, ""])


def chapter_section(title: str, pages: Sequence[Page], captures: Examples) -> str:
    return "\n".join([f"## {title}", "", *(finding_section(page, captures) for page in pages)])


def cause_section(cause: Cause, example: dict[str, Any] | None) -> str:
    parts = [f"### {cause.code}", f"**{cause.title}.** {cause.shows}"]
    if cause.rivals:
        parts.append("\n".join(f"- Not `{rival}`: {fact}." for rival, fact in cause.rivals.items()))
    if cause.unknown:
        parts.append(f"*Unknown:* {cause.unknown}")
    if cause.explains:
        parts.append(f"*Effects:* {', '.join(f'`{code}`' for code in cause.explains)}")
    if example:
        facts = ", ".join(filter(None, (example["certainty"], example["cost"])))
        parts.append(f"*Example* (`{example['capture']}`; {facts}): {example['sentence']}")
        if example["frames"]:
            parts.append("\n".join(["```text", *example["frames"], "```"]))
    return "\n\n".join([*parts, ""])


def family_section(title: str, causes: Sequence[Cause], captures: dict[str, dict[str, Any]]) -> str:
    return "\n".join([f"## {title}", "", *(cause_section(cause, captures.get(cause.code)) for cause in causes)])


def verdicts_cell(verdicts: Set[str | None] | None) -> str:
    """Returns the verdicts that a reason explains."""
    if verdicts is None:
        return "any"
    all_kinds = verdicts >= RETRANSMISSIONS
    named = sorted(kind.replace("_", " ") for kind in verdicts - (RETRANSMISSIONS if all_kinds else set()) if kind)
    return ", ".join([*["retransmitted"][: int(all_kinds)], *named, *["–"][: int(None in verdicts)]])


def reasons_section() -> str:
    """Returns the table of the reasons of `wiretale verify`, in the order in which they are tried."""
    head = ["| # | reason | wiretale | Wireshark | why |", "| ---: | --- | --- | --- | --- |"]
    rows = (
        (
            f"W{number}",
            f"`{rule.name}`",
            *map(verdicts_cell, rule.verdicts),
            re.sub(r"\{(\w+)\}", placeholder, rule.sentence),
        )
        for number, rule in enumerate(RULES, 1)
    )
    return "\n".join([*head, *(f"| {' | '.join(row)} |" for row in rows), ""])


def placeholder(field: re.Match[str]) -> str:
    """Returns the name of a text that depends on the frame."""
    return f"({field[1].replace('_', ' ')})"


def missing_paths(page: str) -> list[str]:
    """Returns the paths that a page names between backticks and that do not exist."""
    names = re.findall(r"`([a-z\d_.*-]+/[a-z\d_.*/-]*)`", (ROOT / page).read_text("utf-8"))
    bases = [ROOT / folder for folder in ("", "analyzer", "analyzer/core", "benchmarks", "reports", "traffic")]
    return [
        f"{page} names {name}, which does not exist"
        for name in names
        if not any(list(base.glob(name.rstrip("/"))) for base in bases)
    ]


def main() -> int:
    """Writes the pages; returns 1 if a guide names a missing path, or with --check if a page is out of date."""
    captures, causes = examples(), cause_examples()
    files = {
        EXAMPLES: json.dumps(captures, indent=1, ensure_ascii=False) + "\n",
        CAUSE_EXAMPLES: json.dumps(causes, indent=1, ensure_ascii=False) + "\n",
        ROW_TYPES: module_text(_core.schemas()),
        **{JSON_SCHEMAS / name: text for name, text in schema_texts(_core.schemas()).items()},
    }
    made = {
        "tables.md": [table_section(*schema) for schema in _core.schemas()],
        "findings.md": [chapter_section(*chapter, captures) for chapter in CHAPTERS.items()],
        "causes.md": [family_section(*family, causes) for family in CAUSES_BY_FAMILY.items()],
        "verdicts.md": [reasons_section()],
    }
    wrong = [*missing_paths("docs/ARCHITECTURE.md"), *missing_paths("CONTRIBUTING.md")]
    for name, sections in made.items():
        old = (DOCS / name).read_text("utf-8")
        head, _, made_before = old.partition(MADE)
        _, end, after = made_before.partition(END)
        new = "\n".join([head + MADE, *sections]) + end + after
        if sys.argv[1:] != ["--check"]:
            (DOCS / name).write_text(new, "utf-8")
        elif new != old:
            wrong.append(f"docs/{name} is out of date: python .ci/make_docs.py")
    for path, text in files.items():
        if sys.argv[1:] != ["--check"]:
            path.write_text(text, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != text:
            wrong.append(f"{path.relative_to(ROOT)} is out of date: python .ci/make_docs.py")
    print("".join(f"{line}\n" for line in wrong), end="", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
