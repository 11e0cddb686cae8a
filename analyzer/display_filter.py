# SPDX-License-Identifier: Apache-2.0
"""Wireshark display filters: written for flows and frames, and recognized where a capture filter was expected."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

PORT_FIELDS = {protocol: f"{protocol}.port" for protocol in ("tcp", "udp", "udplite", "sctp", "dccp")}
FRAMES_MAX = 50
TOKEN = re.compile(r'\s*("[^"]*"|&&|\|\||==|!=|<=|>=|\.\.|[()!{},<>~=]|(?:[\w:/-]|\.(?!\.))+|\S)')
FIELD = re.compile(r"[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)+")
WORDS = {
    **{"&&": "and", "||": "or", "!": "not"},
    **{"==": "=", "eq": "=", "ne": "!=", "gt": ">", "lt": "<", "ge": ">=", "le": "<="},
}
OPERATORS = ("=", "!=", ">", "<", ">=", "<=")
PORT_MOST = 65_535
ADDRESSES = {
    f"{family}.{field}": f"{layer}{direction}host"
    for family, layer in (("ip", ""), ("ipv6", ""), ("eth", "ether "))
    for field, direction in (("addr", ""), ("host", ""), ("src", "src "), ("dst", "dst "))
}
PORTS = {
    f"{protocol}.{field}": f"{protocol} {direction}port"
    for protocol in ("tcp", "udp", "sctp")
    for field, direction in (("port", ""), ("srcport", "src "), ("dstport", "dst "))
}
NUMBERS = {
    **{"frame.len": "len", "ip.len": "ip[2:2]", "ip.ttl": "ip[8]", "ip.proto": "ip[9]", "ip.id": "ip[4:2]"},
    **{"ip.dsfield": "ip[1]", "ip.tos": "ip[1]", "ipv6.nxt": "ip6[6]", "ipv6.hlim": "ip6[7]", "ipv6.plen": "ip6[4:2]"},
    **{"tcp.flags": "tcp[13]", "tcp.window_size_value": "tcp[14:2]"},
    **{"tcp.seq_raw": "tcp[4:4]", "tcp.ack_raw": "tcp[8:4]"},
    **{"udp.length": "udp[4:2]", "icmp.type": "icmp[0]", "icmp.code": "icmp[1]"},
}
NAMED = {"vlan.id": "vlan", "mpls.label": "mpls", "eth.type": "ether proto"}
FLAGS = {
    **{f"tcp.flags.{flag}": f"tcp[13] & {bit}" for flag, bit in (("fin", 1), ("syn", 2), ("reset", 4), ("push", 8))},
    **{f"tcp.flags.{flag}": f"tcp[13] & {bit}" for flag, bit in (("ack", 16), ("urg", 32), ("ece", 64), ("cwr", 128))},
    **{"ip.flags.df": "ip[6] & 0x40", "ip.flags.mf": "ip[6] & 0x20"},
}
# Protocols alone; those above TCP and UDP become their usual port.
PROTOCOLS = {
    **{name: name for name in ("tcp", "udp", "icmp", "arp", "rarp", "ip", "sctp", "igmp", "vlan", "mpls")},
    **{"ipv6": "ip6", "icmpv6": "icmp6", "ospf": "ip proto 89", "gre": "ip proto 47", "esp": "ip proto 50"},
    **{"http": "tcp port 80", "http2": "tcp port 443", "tls": "tcp port 443", "ssl": "tcp port 443"},
    **{"quic": "udp port 443", "dns": "port 53", "mdns": "udp port 5353", "ssh": "tcp port 22", "ftp": "tcp port 21"},
    **{"smtp": "tcp port 25", "telnet": "tcp port 23", "imap": "tcp port 143", "pop": "tcp port 110"},
    **{"ntp": "udp port 123", "snmp": "udp port 161", "sip": "port 5060", "ldap": "port 389", "nfs": "port 2049"},
    **{"smb": "tcp port 445", "smb2": "tcp port 445", "bgp": "tcp port 179", "tftp": "udp port 69"},
    **{"isakmp": "udp port 500", "vxlan": "udp port 4789"},
    **{"syslog": "udp port 514", "mqtt": "tcp port 1883", "mysql": "tcp port 3306", "pgsql": "tcp port 5432"},
    **{"rtsp": "tcp port 554", "kerberos": "port 88", "dhcp": "udp portrange 67-68", "bootp": "udp portrange 67-68"},
    **{"dhcpv6": "udp portrange 546-547", "rtcp": "", "rtp": ""},
}
RESULTS = {
    "tcp.analysis": "the summary and `wiretale analyze --all` have such segments",
    "tcp.stream": "choose the flow by its hosts and ports",
}


def flow_filter(flow: Mapping[str, Any]) -> str:
    """Returns a filter for both directions of a flows row: `ip.addr == 10.0.0.1 && … && tcp.port == 80`."""
    address = "ip.addr" if flow["ip_version"] == 4 else "ipv6.addr"
    parts = [f"{address} == {flow['source']}", f"{address} == {flow['destination']}"]
    field = PORT_FIELDS.get(flow["protocol"])
    if field and flow["source_port"] is not None:
        parts += [f"{field} == {flow['source_port']}", f"{field} == {flow['destination_port']}"]
    elif flow["protocol_number"] is not None:
        parts.append(f"{'ip.proto' if flow['ip_version'] == 4 else 'ipv6.nxt'} == {flow['protocol_number']}")
    return " && ".join(dict.fromkeys(parts))


def frame_filter(frames: Iterable[int]) -> str:
    """Returns a filter for frames of one file: `frame.number in {4, 7}`."""
    numbers = sorted(set(frames))[:FRAMES_MAX]
    if len(numbers) == 1:
        return f"frame.number == {numbers[0]}"
    return f"frame.number in {{{', '.join(map(str, numbers))}}}"


class NoCaptureFilter(Exception):
    """Raised if a part of the display filter, its argument, has no capture filter."""


class DisplayFilter:
    """Recursive-descent parser of display filters; each method returns a capture filter."""

    def __init__(self, text: str) -> None:
        self.tokens = [WORDS.get(token, token) for token in TOKEN.findall(text)]

    def take(self) -> str:
        """Returns the next token; an empty one at the end."""
        return self.tokens.pop(0) if self.tokens else ""

    def is_next(self, *tokens: str) -> bool:
        """Returns whether one of the tokens follows."""
        return bool(self.tokens) and self.tokens[0] in tokens

    def expression(self) -> str:
        """Parses terms joined by `or`."""
        return self.joined("or", self.term)

    def term(self) -> str:
        """Parses factors joined by `and`."""
        return self.joined("and", self.factor)

    def joined(self, word: str, part: Callable[[], str]) -> str:
        """Parses parts joined by a word, with parentheses, because libpcap gives `and` and `or` the same precedence."""
        parts = [part()]
        while self.is_next(word):
            self.take()
            parts.append(part())
        return parts[0] if len(parts) == 1 else f" {word} ".join(map(in_parentheses, parts))

    def factor(self) -> str:
        """Parses a negation, an expression in parentheses, or a test."""
        token = self.take()
        if token == "not":
            return f"not {in_parentheses(self.factor())}"
        if token == "(":
            inside = self.expression()
            if self.take() != ")":
                raise NoCaptureFilter("parentheses that do not match")
            return inside
        return self.test(token)

    def test(self, field: str) -> str:
        """Parses a field with an operator and a value, with a set of values, or alone."""
        if self.is_next(*OPERATORS):
            return compared(field, self.take(), self.take().strip('"'))
        if self.is_next("in"):
            self.take()
            return " or ".join(compared(field, "=", value) for value in self.members())
        if field in {*ADDRESSES, *PORTS, *NUMBERS, *FLAGS}:  # alone: present with any value
            field = field.partition(".")[0]
        if not PROTOCOLS.get(field):
            raise NoCaptureFilter(field)
        return PROTOCOLS[field]

    def members(self) -> list[str]:
        """Parses `{80 443}` or `{80, 443, 8000..8080}`."""
        if self.take() != "{":
            raise NoCaptureFilter("in")
        values: list[str] = []
        while not self.is_next("}") and self.tokens:
            token = self.take()
            if token == "..":
                values[-1:] = [f"{values[-1] if values else ''}-{self.take()}"]
            elif token != ",":
                values.append(token.strip('"'))
        self.take()
        return values


def in_parentheses(part: str) -> str:
    """Adds parentheses if `and` or `or` cannot join the part as it is."""
    return f"({part})" if re.search(r" (and|or|&) |^not ", part) else part


def compared(field: str, operator: str, value: str) -> str:
    """Returns one test as a capture filter."""
    if not re.fullmatch(r"[\w.:/-]+", value):
        raise NoCaptureFilter(field)
    if field in NUMBERS:
        return f"{NUMBERS[field]} {operator} {value}"
    if field in FLAGS and value in ("0", "1", "true", "True", "false", "False"):
        is_set = (value in ("1", "true", "True")) == (operator == "=")
        return f"{FLAGS[field]} {'!=' if is_set else '='} 0"
    if field in PORTS and operator not in ("=", "!="):
        return port_range(PORTS[field], operator, value)
    if operator not in ("=", "!="):
        raise NoCaptureFilter(field)
    return f"{'not ' if operator == '!=' else ''}{equals(field, value)}"


def equals(field: str, value: str) -> str:
    """Returns the capture filter of a field with a value."""
    if field in ADDRESSES:
        return f"{ADDRESSES[field].replace('host', 'net') if '/' in value else ADDRESSES[field]} {value}"
    if field in PORTS:
        return f"{PORTS[field].replace('port', 'portrange') if '-' in value else PORTS[field]} {value}"
    if field in NAMED:
        return f"{NAMED[field]} {value}"
    raise NoCaptureFilter(field)


def port_range(primitive: str, operator: str, value: str) -> str:
    """Returns the capture filter of ports above or below a number."""
    if not value.isdecimal():
        raise NoCaptureFilter(primitive)
    port = int(value)
    first, last = {">": (port + 1, PORT_MOST), ">=": (port, PORT_MOST), "<": (0, port - 1), "<=": (0, port)}[operator]
    if not 0 <= first <= last <= PORT_MOST:
        raise NoCaptureFilter(f"{primitive} {operator} {value}")
    return f"{primitive.replace('port', 'portrange')} {first}-{last}"


def is_display_filter(text: str) -> bool:
    """Returns whether a text, which is not a capture filter, has a field or protocol of Wireshark."""
    tokens = DisplayFilter(text).tokens
    fields = {*ADDRESSES, *PORTS, *NUMBERS, *NAMED, *FLAGS}
    return any(
        token in fields
        or (FIELD.fullmatch(token) and token.partition(".")[0] in {*PROTOCOLS, "frame", "eth", "data", "_ws"})
        for token in tokens
    ) or (bool(tokens) and tokens[0] in PROTOCOLS and PROTOCOLS[tokens[0]] != tokens[0])


def display_filter_hint(text: str) -> str | None:
    """Returns a hint with the equivalent capture filter, or the reason without; None if the text is no display filter."""
    if not is_display_filter(text):
        return None
    parsed = DisplayFilter(text)
    try:
        found = parsed.expression()
        if parsed.tokens:
            raise NoCaptureFilter(parsed.tokens[0])
    except RecursionError:
        return None
    except NoCaptureFilter as error:
        part = str(error) or "its end"
        result = next((f"; {text}" for name, text in RESULTS.items() if part.startswith(name)), "")
        return f"that is a Wireshark display filter; there is no capture filter for {part}{result}"
    return f"that is a Wireshark display filter; as a capture filter: '{found}'"
