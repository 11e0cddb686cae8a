# SPDX-License-Identifier: Apache-2.0
"""The native core (analyzer/core/module.c)."""

from collections.abc import Iterator
from typing import Any

class Error(Exception):
    """args: (kind, text); kind is "usage", "unreadable" or "memory"."""

class Table:
    """A finished table; it keeps its Analysis alive."""

    @property
    def name(self) -> str: ...
    @property
    def meaning(self) -> str: ...
    def __len__(self) -> int: ...
    def columns(self) -> list[tuple[str, str, str, str]]: ...
    def column(self, name: str, /) -> list[Any]: ...
    def rows(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]: ...
    def nonzero(self, names: list[str], /) -> dict[str, list[tuple[int, Any]]]: ...
    def rows_by_flow(self, flow_count: int, /) -> bytes: ...
    def packed(
        self,
        name: str,
        code: str,
        *,
        offset: int = 0,
        divisor: int = 1,
        delta: bool = False,
        flows: list[int] | None = None,
    ) -> bytes: ...
    def packet_streams(self, flows: list[int], base_ns: int, /) -> tuple[int, dict[str, bytes]]: ...
    def json(self) -> Iterator[bytes]: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

class Analysis:
    """One pass over capture files; the tables are complete after finish()."""

    def __new__(
        cls,
        paths: list[str],
        *,
        filter: str | None = None,
        start_ns: int | None = None,
        end_ns: int | None = None,
        max_flows: int = 1_000_000,
        packets: str | list[int] = "none",
        packets_max: int = 2_000_000,
        captures_only: bool = False,
        block_size: int = 0,
    ) -> Analysis: ...
    @property
    def bytes_read(self) -> int: ...
    @property
    def bytes_total(self) -> int: ...
    @property
    def packets_read(self) -> int: ...
    def step(self, most: int, /) -> bool: ...
    def finish(self) -> None: ...
    def table(self, name: str, /) -> Table: ...
    def totals(self) -> dict[str, int]: ...
    def add_finding(
        self,
        code: str,
        severity: str,
        scope: str,
        flow: int,
        sentence: str,
        cost: float,
        cost_unit: str | None,
        evidence: str | None,
        advice: str | None,
        filter: str | None,
        /,
    ) -> None: ...

def schemas() -> list[tuple[str, str, list[tuple[str, str, str, str]]]]: ...
def libraries() -> dict[str, str]: ...
