# SPDX-License-Identifier: Apache-2.0
"""`wiretale store prune` and `wiretale store check`: captures that are too old or too many, and files that changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from wiretale.analyzer.errors import InputError, WiretaleError
from wiretale.analyzer.files.durable import sync
from wiretale.analyzer.printable import printable
from wiretale.reports.store.add import digest_of, writer
from wiretale.reports.store.compact import is_many, manifest_of, rewrite_day, sizes_of, upkeep
from wiretale.reports.store.layout import (
    CAPTURE,
    DAY,
    EMPTY,
    EMPTY_MANY,
    MANIFEST,
    MARKER,
    REMOVED,
    VIEWS,
    Stored,
    cannot_write,
    captures,
    is_changing,
    left_over,
    open_store,
    staging,
    writing,
)
from wiretale.reports.store.views import connect, has_views


class Problem(NamedTuple):
    """Something wrong with a store."""

    path: Path
    text: str


class Removal(NamedTuple):
    """A unit that can be removed alone: a folder, or a capture of a folder that `store compact` made."""

    stored: Stored
    #: of the folder, or of the capture
    digest: str
    bytes: int
    captures: int

    @property
    def path(self) -> Path:
        """The folder; of a capture in it, with its digest."""
        is_unit = self.digest == self.stored.digest
        return self.stored.folder if is_unit else self.stored.folder / f"capture_id={self.digest}"

    @property
    def digests(self) -> list[str]:
        """The SHA-256 of each capture; none if the folder is damaged."""
        with suppress(OSError, ValueError):
            return self.stored.digests if self.digest == self.stored.digest else [self.digest]
        return []

    @property
    def age(self) -> tuple[str, str]:
        """The sort key, the oldest first. Those without a time are the oldest."""
        return self.stored.day or "", self.digest


def removals(unit: Stored) -> list[Removal]:
    """Returns what can be removed of a folder."""
    with suppress(InputError):  # a damaged manifest: the folder can be removed
        if is_many(unit) and "sizes" in manifest_of(unit):
            sizes = sizes_of(unit)
            factor = unit.bytes / max(1.0, sum(sizes.values()))  # of the manifest, too
            ends = [round(end * factor) for end in accumulate(sizes.values(), initial=0.0)]  # so that the shares add up
            return [
                Removal(unit, digest, end - begin, 1)
                for digest, (begin, end) in zip(sizes, pairwise(ends), strict=True)
            ]
    return [Removal(unit, unit.digest, unit.bytes, unit.captures)]


def too_many(candidates: list[Removal], most: int) -> list[Removal]:
    """Returns the oldest, without which the rest takes at most `most` bytes."""
    excess = sum(removal.bytes for removal in candidates) - most
    excessive = []
    for removal in sorted(candidates, key=lambda removal: removal.age):
        if excess <= 0:
            break
        excessive.append(removal)
        excess -= removal.bytes
    return excessive


def chosen_for_removal(folder: Path, age_ns: int | None, most: int | None) -> list[Removal]:
    """Returns the captures whose day ended more than `age_ns` ago, or that exceed `most` bytes together, the oldest first."""
    open_store(folder)
    candidates = [removal for item in captures(folder) for removal in removals(item)]
    old: list[Removal] = []
    if age_ns is not None:
        limit = (datetime.now(UTC) - timedelta(microseconds=age_ns // 1000)).strftime("%Y-%m-%d")
        old = [item for item in candidates if item.stored.day is not None and item.stored.day < limit]
    gone = {item.stored for item in old}
    remaining = [item for item in candidates if item.stored not in gone]
    return sorted([*old, *(too_many(remaining, most) if most is not None else [])], key=lambda item: item.age)


def listed(folder: Path, doomed: Sequence[Removal]) -> Iterator[str]:
    """Yields a line for each capture to remove: its place in the store, and the path from which it was added."""
    import duckdb

    paths: dict[str, str] = {}
    with suppress(InputError, duckdb.Error), connect(folder, "captures") as connection:  # the store may be damaged
        paths = dict(connection.execute("SELECT capture_id, path FROM captures").fetchall())
    for removal in doomed:
        for digest in removal.digests or [removal.digest]:
            place = removal.path if digest == removal.digest else removal.path / f"capture_id={digest}"
            yield printable(f"{place}: {paths.get(digest, 'damaged')}")


def prune(folder: Path, age_ns: int | None, most: int | None) -> list[Removal]:
    """Removes captures as chosen_for_removal() returns them, and returns them. OutputError if the store cannot be written."""
    open_store(folder)
    removed: list[Removal] = []
    try:
        with writing(folder), upkeep(folder):
            # The size of a compacted capture is an estimate.
            while doomed := chosen_for_removal(folder, age_ns, most):
                remove(folder, doomed)
                removed += doomed
    except WiretaleError:
        raise
    except OSError as error:
        raise cannot_write(folder, error) from None
    return removed


def remove(folder: Path, doomed: Sequence[Removal]) -> None:
    """Removes captures; the caller has both locks."""
    parts: dict[Stored, set[str]] = {}
    for removal in doomed:
        parts.setdefault(removal.stored, set()).add(removal.digest)
    rewritten = {
        unit: digests for unit, digests in parts.items() if digests != {removal.digest for removal in removals(unit)}
    }
    for unit in parts.keys() - rewritten.keys():  # first, because the others take room
        with staging(folder, REMOVED) as made:
            unit.folder.rename(made / "capture")
            sync(unit.folder.parent)
    for unit, digests in rewritten.items():
        with writer(folder) as connection:
            rewrite_day(folder, connection, [unit], digests)
    for day in {removal.stored.folder.parent for removal in doomed}:
        with suppress(OSError):  # it has captures, perhaps one that was added meanwhile
            day.rmdir()


def check_capture(unit: Stored) -> Iterator[Problem]:
    """Yields the files of a capture that are missing or have changed."""
    try:
        manifest = unit.manifest()
        files = {name: (entry["bytes"], entry["sha256"]) for name, entry in manifest["files"].items()}
        same = manifest["sha256"] == unit.digest
    except (OSError, ValueError, KeyError, TypeError):
        yield Problem(unit.folder / MANIFEST, "is missing or damaged")
        return
    if not same:
        yield Problem(unit.folder, "has the name of another capture")
    for name in sorted({*files, "captures.parquet", *(file.name for file in unit.folder.glob("*.parquet"))}):
        file = unit.folder / name
        if not file.is_file():
            yield Problem(file, "is missing")
        elif name not in files:
            yield Problem(file, f"is not in {MANIFEST}")
        elif (file.stat().st_size, digest_of(file)) != files[name]:
            yield Problem(file, "has changed since it was written")


def strays(folder: Path) -> Iterator[Path]:
    """Yields files and folders that no store has. Names that begin with a dot are of processes."""
    for place in sorted(folder.glob("[!.]*")):
        if not DAY.fullmatch(place.name):
            yield from () if place.name in (MARKER, VIEWS) else (place,)
            continue
        for unit in sorted(place.glob("[!.]*")):
            if not CAPTURE.fullmatch(unit.name) and f"{place.name}/{unit.name}" not in (EMPTY, EMPTY_MANY):
                yield unit
                continue
            yield from (
                path for path in sorted(unit.glob("[!.]*")) if path.name != MANIFEST and path.suffix != ".parquet"
            )


def check(folder: Path) -> Iterator[Problem]:
    """Yields what is wrong with a store; each file is read. Raises InputError if it is no store."""
    open_store(folder)
    seen: dict[str, Path] = {}
    for unit in captures(folder):
        yield from check_capture(unit)
        with suppress(OSError, ValueError):  # check_capture() has reported it
            for digest in unit.digests:
                if digest in seen:
                    yield Problem(unit.folder, f"is stored twice, also as {seen[digest]}")
                seen[digest] = unit.folder
    if not has_views(folder):
        yield Problem(folder / VIEWS, "is missing or has changed (the next `store add` writes it again)")
    for place in strays(folder):
        yield Problem(place, "is no part of the store")
    for made in () if is_changing(folder) else left_over(folder):
        yield Problem(made, "is of a process that was killed (the next `store add` removes it)")
