# SPDX-License-Identifier: Apache-2.0
"""Modules of a page are joined to one script: in the order of their imports, in one scope."""

from __future__ import annotations

import re

import pytest

from wiretale.reports.html.modules import PAGE, ModuleError, join, ordered, script

SHAPES = 'import { area } from "../areas.js";\n\nexport const square = (side) => area(side, side), UNIT = square(1);\n'
TWO_IMPORTS = 'import { UNIT, square } from "./shapes/square.js";\nimport { area } from "./areas.js";\n'
MODULES = {
    "main.js": f"{TWO_IMPORTS}\nsquare(area(UNIT, 2));\n",
    "shapes/square.js": SHAPES,
    "areas.js": "// The area.\nexport function area(a, b) {\n  return a * b;\n}\n",
}


def test_a_module_follows_those_that_it_imports() -> None:
    joined = join("main.js", MODULES.__getitem__)
    assert [line for line in joined.splitlines() if line and line[0] not in " }"] == [
        '"use strict";',
        "// The area.",
        "function area(a, b) {",
        "const square = (side) => area(side, side), UNIT = square(1);",
        "square(area(UNIT, 2));",
    ]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"areas.js": 'import { UNIT } from "./shapes/square.js";\n'},
            "circle: shapes/square.js, areas.js, shapes/square.js",
        ),
        ({"areas.js": "function area() {}\n"}, "imports area, which areas.js does not export"),
        (
            {"areas.js": "export const b = { c: 1 }, area = b;\nlet UNIT = 1;\n"},
            "areas.js and shapes/square.js declare UNIT",
        ),
        (
            {"areas.js": "export const area = 1;\nasync function square() {}\n"},
            "areas.js and shapes/square.js declare square",
        ),
        ({"areas.js": 'import * as all from "./all.js";\n'}, "areas.js: not one of the forms"),
        ({"areas.js": "const area = 1;\nexport { area };\n"}, "areas.js: not one of the forms"),
        ({"areas.js": "export default class Area {}\n"}, "areas.js: not one of the forms"),
    ],
)
def test_modules_that_cannot_be_joined_are_refused(changed: dict[str, str], message: str) -> None:
    with pytest.raises(ModuleError, match=re.escape(message)):
        join("main.js", {**MODULES, **changed}.__getitem__)


def test_each_module_is_on_a_page() -> None:
    def names(folder: str) -> set[str]:
        parts = PAGE.joinpath(folder) if folder else PAGE
        inside = {f"{folder}/{part.name}".removeprefix("/"): part for part in parts.iterdir()}
        below = [names(name) for name, part in inside.items() if part.is_dir()]
        return {name for name in inside if name.endswith(".js")}.union(*below)

    used = set[str]()
    for entry in ("capture/capture.js", "console/console.js", "diff.js", "figures.js"):
        used |= {module.name for module in ordered(entry, lambda name: PAGE.joinpath(name).read_text("utf-8"))}
        assert not re.search(r"^(import|export)\b", script(entry), re.MULTILINE)
    assert used == names("")
