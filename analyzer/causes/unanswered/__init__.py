# SPDX-License-Identifier: Apache-2.0
"""Nobody answers: hosts, listeners and names."""

from __future__ import annotations

from types import ModuleType

from wiretale.analyzer.causes.unanswered import (
    accept_queue,
    dropped_syns,
    error_answers,
    flood,
    gateways,
    host_down,
    local_network,
    loop,
    names,
    other_address,
    passive,
    paths,
    pings,
    udp_services,
)
from wiretale.analyzer.causes.unanswered.refusals import (
    closed_ports,
    families,
    filtered,
    named_hosts,
    named_members,
    offers,
    proxy_header,
    revocation,
    short_request,
)

CHAPTER = "Nobody answers"
#: in the order of tests
MODULES: tuple[ModuleType, ...] = (
    loop,
    gateways,
    local_network,
    other_address,
    udp_services,
    names,
    proxy_header,
    short_request,
    error_answers,
    paths,
    flood,
    dropped_syns,
    revocation,
    named_members,
    named_hosts,
    accept_queue,
    passive,
    host_down,
    offers,
    families,
    closed_ports,
    filtered,
    pings,
)
