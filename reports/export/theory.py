# SPDX-License-Identifier: Apache-2.0
"""`wiretale theory --json`: the maximum that a link can carry, as one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.theory import capacity as theory

SCHEMA = "wiretale.theory/1"


def protocol_object(link: theory.Link, protocol: str, block: int | None) -> dict[str, Any]:
    """Returns the figures of one protocol; those of a block if its size is given."""
    figures = asdict(theory.maximum(link, protocol))
    if protocol == "udp":
        figures["largest_unfragmented_payload"] = theory.datagram_most(link)
    if block is None:
        return figures
    try:
        figures |= asdict(theory.block_maximum(link, protocol, block))
    except UsageError as error:  # the other protocol may be able to carry it
        return {**figures, "block_problem": str(error)}
    if protocol == "tcp":
        figures["stream"] = asdict(theory.stream(link, block))
    return figures


def theory_object(
    link: theory.Link,
    protocols: Sequence[str],
    block: int | None,
    version: str,
    path: theory.PathBounds | None = None,
) -> dict[str, Any]:
    """Returns all figures. UsageError if the block exceeds the limit of the only protocol."""
    if block is not None and len(protocols) == 1:
        theory.check_block(link, protocols[0], block)
    timed = theory.with_timestamps(link) if "tcp" in protocols else None
    return {
        "schema": SCHEMA,
        "wiretale": version,
        "tcp_with_timestamps_bps": timed and timed.max_payload_bps,
        "path": path and asdict(path),
        "link_bps": link.bps,
        **{name: getattr(link, name) for name in ("mtu", "framing", "ip", "tcp_options")},
        "block_bytes": block,
        **{protocol: protocol_object(link, protocol, block) for protocol in protocols},
    }
