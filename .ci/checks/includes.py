# SPDX-License-Identifier: Apache-2.0
"""Checks who includes whom among the C files, and the sizes of folders: python .ci/checks/includes.py.

- A folder of the core includes only folders of a later layer (LAYERS).
- A program includes its own files and common/, and an include is written with its folder.
- No files, and no folders, depend on each other in a circle, where a file depends on those that it includes and on those that
  it calls. A .c file and its header are one node.
- Python.h is included by core/python alone.
- A folder has at most 15 source files, and fewer than 10 .c files have under 50 lines; a header may be short.

Calls are the global symbols that an object file in build/ takes from another one of its program, so that static functions with
the same name make no call; `make lint-layers` compiles them. Tests and fuzz targets are not checked.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Objects of `make lint-c`, and of `make build`, which alone compiles core/python.
OBJECTS = ("build/lint", "build/temp.*")
# The folders below which C files name each other, the more specific first.
PROGRAMS = ("analyzer/core", "capture", "traffic/generator", "traffic/link", "traffic", "common")
LAYERS = (
    ("python",),
    ("shard",),
    ("pipeline", "cut"),
    ("update", "local"),
    ("service",),
    ("exchange",),
    ("course",),
    ("rows",),
    ("tracker",),
    ("verdict",),
    ("flow",),
    ("tcp",),
    ("format", "application", "identity"),
    ("input", "sequence", "decode", "export", "quic"),
    ("table",),
    ("base",),
)
LAYER = {folder: number for number, layer in enumerate(LAYERS) for folder in layer}
FILES_MOST = 15
LIST_MOST = 25  # of a folder that is a flat list of alike things
LISTS = {"analyzer/findings", "common", "docs", "reports/html/page", "src/wiretale/cli", "traffic/lab/profiles"}
SMALL_LINES, SMALL_MOST = 50, 9
GENERATED = "library_calls.h"
SKIPPED = {"test", "tests", "fuzz", "build", "dist", "__pycache__", "sample_pcaps"}
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<(Python\.h)>)', re.M)
Graph = Mapping[str, set[str]]


def source_files(*suffixes: str) -> list[Path]:
    """Returns files below the root, without tests and hidden folders, relative to it."""
    paths = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.suffix in suffixes)
    return sorted(path for path in paths if not any(part in SKIPPED or part[0] == "." for part in path.parts[:-1]))


def program_of(path: Path) -> Path:
    """Returns the folder that the includes of a file are relative to."""
    return next((Path(program) for program in PROGRAMS if path.is_relative_to(program)), Path())


def find_include(path: Path, name: str) -> Path | None:
    """Returns the included file: of the same program, of common/, or beside the file."""
    places = (program_of(path) / name, Path(name), path.parent / name)
    return next((place for place in places if (ROOT / place).is_file()), None)


def includes_of(path: Path) -> Iterator[tuple[str, Path | None]]:
    """Yields the name and the file of each include. There is no file for Python.h, or if it does not exist."""
    for quoted, python in INCLUDE.findall((ROOT / path).read_text("utf-8")):
        if quoted != GENERATED:
            yield (python, None) if python else (quoted, find_include(path, quoted))


def core_folder(path: Path) -> str | None:
    return path.parts[2] if path.parts[:2] == ("analyzer", "core") and len(path.parts) > 3 else None


def include_breaches(path: Path) -> Iterator[str]:
    """Yields the includes of a file that go the wrong way."""
    for name, target in includes_of(path):
        if name == "Python.h":
            if core_folder(path) != "python":
                yield f"include {path} Python.h"
        elif target is None:
            yield f"include {path} {name} (no such file)"
        elif not goes_right(path, target):
            yield f"include {path} {target}"
        elif name != str(target if target.parts[0] == "common" else target.relative_to(program_of(path))):
            yield f"include {path} {name} (written without its folder)"


def goes_right(path: Path, target: Path) -> bool:
    if target.parts[0] == "common" or program_of(path) != program_of(target):
        return target.parts[0] == "common"
    here, there = core_folder(path), core_folder(target)
    return here == there or here is None or there is None or LAYER.get(here, 0) < LAYER.get(there, 0)


def node_of(path: Path) -> str:
    """Returns the node of a file: its name without the suffix, as a .c file and its header are one."""
    return str(path.with_suffix(""))


def include_graph(files: list[Path]) -> Graph:
    graph: dict[str, set[str]] = defaultdict(set)
    for path in files:
        graph[node_of(path)] |= {node_of(target) for _, target in includes_of(path) if target}
    return graph


def object_files() -> Iterator[tuple[Path, Path]]:
    """Yields each object file and its place below the folder of objects, if its source exists."""
    for folder in (folder for pattern in OBJECTS for folder in sorted(ROOT.glob(pattern))):
        for path in sorted(folder.rglob("*.o")):
            place = path.relative_to(folder)
            if (ROOT / place.with_suffix(".c")).exists():
                yield path, place


def call_graph() -> Graph:
    """Returns which object files take symbols from which others of the same program."""
    homes: dict[tuple[Path, str], str] = {}
    undefined: dict[str, list[tuple[Path, str]]] = defaultdict(list)
    for path, place in object_files():
        symbols = subprocess.run(["nm", "-g", path], capture_output=True, text=True, check=True).stdout
        for *_, kind, symbol in map(str.split, symbols.splitlines()):
            if kind == "U":
                undefined[node_of(place)].append((program_of(place), symbol))
            else:
                homes[program_of(place), symbol] = node_of(place)
    return {node: {homes[key] for key in keys if key in homes} for node, keys in undefined.items()}


def union(*graphs: Graph) -> Graph:
    """Returns the edges of all graphs, without those from a node to itself."""
    edges: dict[str, set[str]] = defaultdict(set)
    for graph in graphs:
        for node, targets in graph.items():
            edges[node] |= targets - {node}
    return edges


def circle(graph: Graph) -> list[str]:
    """Returns the nodes of a circle, or none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return sorted(set(error.args[1]))
    return []


def folder_graph(graph: Graph) -> Graph:
    """Returns the same between folders; a program's own folder (main, settings) stands above and below all others."""
    folders: dict[str, set[str]] = defaultdict(set)
    for node, targets in graph.items():
        here = Path(node).parent
        if str(here) not in PROGRAMS:
            folders[str(here)] |= {str(Path(target).parent) for target in targets} - {str(here), *PROGRAMS}
    return folders


def size_breaches(files: list[Path]) -> Iterator[str]:
    count: dict[str, int] = defaultdict(int)
    for path in source_files(".c", ".h", ".py", ".js", ".css", ".html", ".md", ".toml"):
        count[str(path.parent)] += path.name != "__init__.py"
    for folder, number in sorted(count.items()):
        if number > (LIST_MOST if folder in LISTS else FILES_MOST):
            yield f"files {folder}"
    small = sum((ROOT / path).read_text("utf-8").count("\n") < SMALL_LINES for path in files if path.suffix == ".c")
    if small > SMALL_MOST:
        yield "small"


def find_breaches() -> list[str]:
    """Returns all breaches, a line each."""
    files = source_files(".c", ".h")
    breaches = [breach for path in files for breach in include_breaches(path)]
    graph = union(include_graph(files), call_graph())
    breaches += [f"circle {node}" for node in circle(graph)]
    breaches += [f"circle {node}/" for node in circle(folder_graph(graph))]
    return sorted({*breaches, *size_breaches(files)})


def main() -> int:
    """Prints the breaches; returns 1 if there is one."""
    breaches = find_breaches()
    print("".join(f"{breach}\n" for breach in breaches), end="", file=sys.stderr)
    return bool(breaches)


if __name__ == "__main__":
    sys.exit(main())
