# SPDX-License-Identifier: Apache-2.0
"""Faults made by real kernels and programs: what is wrong, and who talks. tests/causes/lab.tsv has what each capture says."""

from __future__ import annotations

import ends_talk
import lab_ends
from three_points import BRIDGED, CLIENT, SERVER, Situation, rule

ENDS, TALK = lab_ends.__file__, ends_talk.__file__
WORKS = (ENDS, "connect", "asks", SERVER, 443, 1, 2)
#: a NAT that forgets a connection after 2 s
FORGETS = """
sysctl -qw net.netfilter.nf_conntrack_tcp_timeout_established=2 net.netfilter.nf_conntrack_tcp_loose=0
nft add table ip n; nft add chain ip n p '{ type nat hook postrouting priority 100; }'
nft add rule ip n p oifname right masquerade
"""
STATEFUL = "sysctl -qw net.netfilter.nf_conntrack_tcp_loose=0\n" + rule("ct state invalid drop")
#: the server answers by a link of its own to the client
SHORT_CUT = """
ip -n {c} link add eth1 type veth peer name eth1 netns {s}; ip -n {c} link set eth1 up; ip -n {s} link set eth1 up
ip -n {c} addr add 10.77.3.1/24 dev eth1; ip -n {s} addr add 10.77.3.2/24 dev eth1
ip -n {s} route add 10.77.1.2/32 via 10.77.3.1
for which in all default eth0 eth1; do
    for end in {c} {s}; do ip netns exec $end sysctl -qw net.ipv4.conf.$which.rp_filter=0; done
done
"""
#: router and server send what is for 10.9.0.0/24 to each other
LOOP = """
ip -n {d} route add 10.9.0.0/24 via 10.77.2.2; ip netns exec {s} sysctl -qw net.ipv4.ip_forward=1
ip netns exec {s} sysctl -qw net.ipv4.conf.all.send_redirects=0 net.ipv4.conf.eth0.send_redirects=0
"""
IPV6 = """
for host in {c} {d} {s}; do
    ip netns exec $host sh -c 'for w in /proc/sys/net/ipv6/conf/*; do echo 0 > $w/disable_ipv6; done'
done
ip -n {c} addr add fd00:1::2/64 dev eth0 nodad; ip -n {c} route add default via fd00:1::1
ip -n {s} addr add fd00:2::2/64 dev eth0 nodad; ip -n {s} route add default via fd00:2::1
ip -n {d} addr add fd00:1::1/64 dev left nodad; ip -n {d} addr add fd00:2::1/64 dev right nodad
ip netns exec {d} sysctl -qw net.ipv6.conf.all.forwarding=1
ip netns exec {d} nft add table ip6 f; ip netns exec {d} nft add chain ip6 f c '{{ type filter hook forward priority 0; }}'
ip netns exec {d} nft add rule ip6 f c tcp flags syn drop
"""


def sysctl(host: str, *settings: str) -> str:
    return f"ip netns exec {{{host}}} sysctl -qw {' '.join(settings)}\n"


def asks(
    action: str,
    count: int,
    seconds: float,
    pause: float = 0,
    port: int = 443,
    host: str = SERVER,
    between: float = 0.15,
) -> tuple[object, ...]:
    """A client that makes so many connections and gives each up after so many seconds."""
    return (ENDS, "connect", action, host, port, count, seconds, pause, between)


def serves(action: str, *more: object) -> tuple[tuple[object, ...], ...]:
    """A server at port 443."""
    return ((ENDS, "serve", action, *more),)


ANSWERS = serves("answers")
UNANSWERED = {
    "closed port": Situation((WORKS, asks("asks", 4, 2, port=8080)), ANSWERS),
    "port rejected by RST": Situation(
        (WORKS, asks("asks", 4, 2, port=8080)), ANSWERS, rule("tcp dport 8080 reject with tcp reset")
    ),
    "port rejected by ICMP": Situation(
        (WORKS, asks("asks", 3, 2.5, port=8080)), ANSWERS, rule("tcp dport 8080 reject with icmp type admin-prohibited")
    ),
    "port dropped": Situation((WORKS, asks("asks", 3, 3.5, port=8080)), ANSWERS, rule("tcp dport 8080 drop")),
    "port forbidden by a routing rule": Situation(
        (WORKS, asks("asks", 3, 2.5, port=8080)), ANSWERS, "ip rule add ipproto 6 dport 8080 prohibit\n"
    ),
    "host behind a blackhole route": Situation(
        (asks("asks", 3, 3.5),), ANSWERS, "ip route add blackhole 10.77.2.2/32\n"
    ),
    "SYNs above a rate dropped": Situation(
        (asks("asks", 12, 5),),
        ANSWERS,
        rule("tcp flags & (syn | ack) == syn limit rate over 2/second burst 4 packets drop"),
    ),
    "no such host behind the router": Situation((WORKS, asks("asks", 2, 5, host="10.77.2.99")), ANSWERS),
    "no such host on the LAN": Situation(
        (asks("asks", 2, 5, host="10.77.1.99"),), ANSWERS, network=BRIDGED, after=2.5, alive="10.77.1.3"
    ),
    "nobody accepts": Situation((asks("asks", 6, 4.5),), serves("nothing", 443, 0)),
    "SYNs with ECN dropped": Situation(
        (asks("asks", 4, 5),),
        ANSWERS,
        rule("tcp flags & (ecn | cwr) == ecn | cwr drop"),
        sysctl("c", "net.ipv4.tcp_ecn=1"),
    ),
    "one of four links drops": Situation(
        (asks("asks", 40, 3.5, between=0.02),), ANSWERS, rule("tcp dport 443 tcp sport & 12 == 4 drop")
    ),
    "SYN-ACKs dropped": Situation((asks("asks", 4, 3.5),), ANSWERS, rule("tcp sport 443 drop")),
    "SYN flood met by cookies": Situation(
        ((ENDS, "flood", SERVER, 600, 2), asks("asks", 2, 2)),
        ANSWERS,
        hosts="ip -n {d} route add blackhole 198.51.100.0/24\n"
        + sysctl("s", "net.ipv4.tcp_syncookies=2")
        + sysctl("c", "net.ipv4.tcp_timestamps=0"),
    ),
    "answers bypass a stateful firewall": Situation((asks("asks", 3, 4),), ANSWERS, STATEFUL, SHORT_CUT),
    "routing loop": Situation((asks("asks", 3, 3, host="10.9.0.5"),), ANSWERS, hosts=LOOP, middle="right"),
    "DNS server silent": Situation(
        ((ENDS, "ask-names", SERVER, 4, 0.3),), ((ENDS, "serve-names", "silent"),), after=5.3
    ),
    "DNS server ignores AAAA": Situation(
        ((ENDS, "ask-names", SERVER, 4, 1.0, "1,28"),), ((ENDS, "serve-names", "one-type"),), after=5.3
    ),
    "DNS by TCP dropped": Situation(
        ((ENDS, "ask-names", SERVER, 3, 2.5),), ((ENDS, "serve-names", "truncates"),), rule("tcp dport 53 drop")
    ),
    "DNS server slow": Situation(((ENDS, "ask-names", SERVER, 6, 4.0),), ((ENDS, "serve-names", "slow"),)),
    "IPv6 dropped": Situation(((ENDS, "prefer-ipv6", 5),), (*ANSWERS, (ENDS, "serve-names", "all")), hosts=IPV6),
    "no DHCP server": Situation(((ENDS, "discover", 5),), ANSWERS, network=BRIDGED),
    "two hosts with one address": Situation(
        ((ENDS, "connect", "asks", "10.77.1.3", 443, 4, 2, 0.5), (ENDS, "ping", "10.77.1.3", 10, 0.2)),
        ANSWERS,
        network=BRIDGED,
        hosts="ip -n {d} addr add 10.77.1.3/24 dev bridge\n",
    ),
    "server fails": Situation((asks("asks-http", 4, 2),), serves("fails")),
}
#: before the router puts fragments together
FRAGMENTS = """
nft add table ip r; nft add chain ip r c '{{ type filter hook prerouting priority -450; }}'
nft add rule ip r c '{} drop'
"""
BROKEN = {
    "NAT resets what it forgot": Situation(
        (asks("asks-again", 3, 8, 5.5),),
        ANSWERS,
        FORGETS + rule("meta l4proto tcp ct state invalid reject with tcp reset"),
    ),
    "NAT drops what it forgot": Situation(
        (asks("asks-again", 3, 4.5, 26), WORKS), ANSWERS, FORGETS + rule("meta l4proto tcp ct state invalid drop")
    ),
    "idle, and nobody forgets": Situation((asks("asks-again", 3, 8, 5.5),), ANSWERS),
    "server hangs": Situation((asks("waits", 3, 8, 1.5),), serves("hangs")),
    "server aborts": Situation((asks("waits", 4, 8, 3),), serves("aborts")),
    "device resets requests": Situation(
        (asks("waits", 4, 8, 3),),
        ANSWERS,
        rule("tcp dport 443 ip length 59-90 tcp flags psh reject with tcp reset"),
    ),
    "client gives up": Situation((asks("waits", 3, 8, 1.0),), serves("is-slow"), after=1.5),
    "server never closes": Situation((asks("asks", 4, 8),), serves("never-closes"), after=11.5),
    "server closes idle connections": Situation((asks("asks-closed", 3, 8, 2.0),), serves("closes-idle")),
    "server closes as a request leaves": Situation(
        (asks("asks-closed", 4, 8, 1.17),), serves("closes-idle"), near="--both delay=10ms", far="--both delay=20ms"
    ),
    "large packets vanish": Situation((asks("waits", 1, 8, 3),), serves("downloads"), rule("ip length > 1400 drop")),
    "server falls silent": Situation(
        (asks("uploads", 1, 8, 5.5),), serves("swallows"), rule("counter"), later=(1.5, "nft add rule ip f c drop")
    ),
    "fragments dropped": Situation(
        ((ENDS, "send-datagrams", SERVER, 24, 1900),),
        ((ENDS, "echo"),),
        FRAGMENTS.format("ip frag-off & 0x1fff != 0"),
    ),
    "fragments lost": Situation(
        ((ENDS, "send-datagrams", SERVER, 400, 8000, 0.005),),
        ((ENDS, "echo"),),
        FRAGMENTS.format("ip frag-off & 0x3fff != 0 numgen random mod 100 < 3"),
    ),
    "client distrusts the certificate": Situation(((ENDS, "trust-nobody", SERVER, 4),), ((ENDS, "serve-tls", "/tmp"),)),
    "client reuses a port": Situation(((ENDS, "reuse-port", SERVER),), ANSWERS),
}
LINK = "--both 'rate=100Mbit delay=5ms'"


def talks(kind: str, behind: bool = False, hosts: str = "") -> Situation:
    """Two ends of ends_talk, 20 ms apart."""
    back = (TALK, "server", "back", CLIENT) if behind else None
    client, server = (TALK, "client", kind, SERVER), (TALK, "server", kind, SERVER, CLIENT)
    return Situation((client,), (server,), hosts=hosts, near=LINK, far=LINK, behind=back)


ENDS_SLOW = {
    "server works long": talks("slow-server"),
    "server asks another server": talks("slow-dependency", behind=True),
    "requests one after the other": talks("serial-requests"),
    "each request connects": talks("reconnects"),
    "client pauses": talks("client-pause"),
    "100 Continue never comes": talks("expect-continue"),
    "two writes and Nagle": talks("nagle-delack"),
    "reader is slow": talks("zero-window"),
    "receive buffer is small": talks("small-window"),
    "send buffer is small": talks("send-buffer"),
    "writer has little to send": talks("app-limited"),
    "window scaling is off": talks("no-window-scaling", hosts=sysctl("s", "net.ipv4.tcp_window_scaling=0")),
}


WIDE = "--both 'rate=200Mbit delay=8ms queue=2000'"


def uploads(size: float, rate: float = 0, far: str = "--both delay=8ms", router: str = "") -> Situation:
    """An upload at a rate in bytes/s; 0 is as fast as it can."""
    client = (ENDS, "send", SERVER, 443, size, rate)
    return Situation((client,), serves("swallows"), router, near="--both delay=7ms", far=far, snaplen=256)


CUBIC = "ip -n {c} route change default via 10.77.1.1 dev eth0 congctl cubic\n"
TBF = "tc qdisc add dev right root tbf rate {}\n"
POLICER = "tcp dport 443 limit rate over 1100 kbytes/second burst 15 kbytes drop"
ON_BAD_LINK = "tcp dport 443 jhash ip saddr . ip daddr . tcp sport mod 2 seed 0xbeef == 1"
TAILS_DROPPED = "tcp dport 443 tcp flags & (fin | psh) == psh numgen inc mod 3 == 0 drop"
PATH = {
    "losses at random": uploads(8e6, 4e6, f"{WIDE} --forward loss=0.5%"),
    "outage": uploads(6e6, 2e6, f"{WIDE} --forward outage=1.0s-2.2s"),
    "path stands still": uploads(5e6, 2e6, f"{WIDE} --forward stall=1.0s-2.0s"),
    "policer": uploads(10e6, router=rule(POLICER)),
    "policer with a large bucket": uploads(
        5e6,
        far="--both delay=16ms",
        router=rule("tcp dport 443 limit rate over 500 kbytes/second burst 100 kbytes drop"),
    )._replace(near="--both delay=16ms"),
    "shaper": uploads(6e6, router=TBF.format("10mbit burst 8k limit 30k")),
    "queue without end": Situation(
        ((ENDS, "send", SERVER, 443, 1.2e6),),
        serves("swallows"),
        TBF.format("2mbit burst 16k limit 512k"),
        near="--both delay=5ms",
        far="--both delay=5ms",
        behind=(ENDS, "pings", SERVER, 0.1),
    ),
    "packets overtake": uploads(4e6, 4e6, "--both delay=8ms --forward 'reorder=3% distance=8'"),
    "writer at a rate of its own": uploads(2e6, 475e3, "--both delay=13ms")._replace(near="--both delay=14ms"),
    "delays vary": uploads(4e6, 3e6, "--both 'delay=40ms jitter=25ms'")._replace(hosts=CUBIC),
    "MSS clamped": uploads(
        3e6, 0, "--both 'rate=50Mbit delay=8ms'", rule("tcp flags syn tcp option maxseg size set 536")
    ),
    "packets damaged": uploads(6e6, 4e6, "--both delay=8ms --forward corrupt=0.5%")._replace(snaplen=2000),
    "path is long": Situation(
        (asks("asks", 6, 4, between=0),), ANSWERS, near="--both delay=150ms", far="--both delay=150ms"
    ),
    "slow start": Situation(
        (asks("fetches", 8, 9, between=0.7),),
        serves("sends-objects"),
        near="--both delay=25ms",
        far="--both delay=25ms",
    ),
    "ACKs lost": uploads(6e6, 4e6, f"{WIDE} --reverse loss=20%"),
    "many answers at once": Situation(
        ((ENDS, "fan-out", 24, 6, 6000),),
        serves("sends-pages"),
        hosts="for i in $(seq 3 26); do ip -n {s} addr add 10.77.2.$i/24 dev eth0; done\n"
        + sysctl("s", "net.ipv4.tcp_early_retrans=0"),  # no probes: what loses its end waits for a timer
        far="--both delay=1ms --reverse 'rate=100Mbit queue=32KiB'",
    ),
    "one of two links loses": Situation(
        ((ENDS, "send-in-turn", SERVER, 443, 8e5, 2e6, 20, 0.1),),
        serves("swallows"),
        rule(f"{ON_BAD_LINK} numgen random mod 1000 < 40 drop"),
        near="--both delay=3ms",
        far="--both delay=3ms",
        snaplen=256,
    ),
    "every packet is marked": Situation(
        ((ENDS, "send", SERVER, 443, 4e5),),
        serves("swallows"),
        rule("tcp dport 443 ip ecn != not-ect ip ecn set ce"),
        hosts=sysctl("c", "net.ipv4.tcp_ecn=1")
        + sysctl("s", "net.ipv4.tcp_ecn=1")
        + CUBIC,  # BBR sends on despite marks
        near="--both delay=10ms",
        far="--both delay=10ms",
    ),
    "last segments lost": Situation(
        (asks("asks", 30, 9, between=0.05),), ANSWERS, rule(TAILS_DROPPED), near="--both delay=5ms"
    ),
}
SITUATIONS = {**UNANSWERED, **BROKEN, **ENDS_SLOW, **PATH}
