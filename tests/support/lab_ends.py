# SPDX-License-Identifier: Apache-2.0
"""Programs of a client and of a server, each with a fault of its own: python lab_ends.py NAME [ARGUMENT]...

A server says `ready` once it listens, and serves until it is killed.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable

HTTP_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
LEAKS: list[socket.socket] = []
REQUEST, ANSWER = b"request", bytes(100)


def ready() -> None:
    print("ready", flush=True)


def linger(to: socket.socket) -> None:
    to.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    to.close()


def answer_all(to: socket.socket, answer: bytes = ANSWER) -> None:
    while to.recv(4096):
        to.sendall(answer)


def answer_once(to: socket.socket, think: float, then: float) -> None:
    """Answers one request after a time, and ends after another."""
    to.recv(4096)
    time.sleep(think)
    to.sendall(ANSWER)
    time.sleep(then)


def send_much(to: socket.socket, size: int) -> None:
    to.recv(4096)
    to.sendall(bytes(size))
    time.sleep(8)


def leak(to: socket.socket) -> None:
    to.recv(4096)
    to.sendall(ANSWER)
    LEAKS.append(to.dup())


def swallow(to: socket.socket) -> None:
    while to.recv(1 << 16):
        pass


def abort(to: socket.socket) -> None:
    to.recv(3)
    linger(to)


def hang(to: socket.socket) -> None:
    to.recv(4096)
    time.sleep(60)


#: what a server does with a connection
SERVES: dict[str, Callable[[socket.socket], None]] = {
    "answers": answer_all,
    "fails": lambda to: answer_all(to, HTTP_BUSY),
    "hangs": hang,
    "aborts": abort,
    "is-slow": lambda to: answer_once(to, 1.5, 1.0),
    "never-closes": leak,
    "closes-idle": lambda to: answer_once(to, 0, 1.2),
    "downloads": lambda to: send_much(to, 300_000),
    "sends-objects": lambda to: answer_all(to, bytes(200_000)),
    "sends-pages": lambda to: answer_all(to, bytes(6000)),
    "swallows": swallow,
}


def handle(to: socket.socket, action: str) -> None:
    with contextlib.suppress(OSError), to:
        SERVES[action](to)


def serve(action: str, port: str = "443", backlog: str = "64") -> None:
    """Listens, also for IPv6."""
    listener = socket.create_server(("", int(port)), family=socket.AF_INET6, backlog=int(backlog), dualstack_ipv6=True)
    ready()
    while action != "nothing":
        threading.Thread(target=handle, args=(listener.accept()[0], action), daemon=True).start()
    time.sleep(90)


def serve_tls(folder: str) -> None:
    """TLS 1.2 with a certificate that it signed itself."""
    key, certificate = f"{folder}/key.pem", f"{folder}/certificate.pem"
    command = (
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN=app.example -keyout {key} -out {certificate}"
    )
    subprocess.run(command.split(), check=True, capture_output=True, timeout=60)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("", 443))
    ready()
    while True:
        with contextlib.suppress(OSError), context.wrap_socket(listener.accept()[0], server_side=True) as to:
            to.recv(100)


def question(name: str, kind: int, number: int) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack("!6H", number, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def serve_names(mode: str) -> None:
    """A DNS server that is silent, answers A alone or each type, or truncates."""
    port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    port.bind(("", 53))
    ready()
    while True:
        query, client = port.recvfrom(4096)
        (kind,) = struct.unpack("!H", query[-4:-2])
        address = socket.inet_aton("10.77.2.2") if kind == 1 else socket.inet_pton(socket.AF_INET6, "fd00:2::2")
        record = b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 60, len(address)) + address
        if mode == "slow":
            time.sleep(0.8)
        if mode == "silent" or (mode == "one-type" and kind != 1):
            continue
        flags, count = (0x8380, 0) if mode == "truncates" else (0x8180, 1)
        header = query[:2] + struct.pack("!5H", flags, 1, count, 0, 0)
        port.sendto(header + query[12:] + record * count, client)


def ask_names(host: str, count: str, wait: str, kinds: str = "1") -> None:
    """Asks for names, each type from one port, and repeats what is not answered in time, once."""
    for number in range(int(count)):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
            port.connect((host, 53))
            port.settimeout(float(wait))
            pending = {place: int(kind) for place, kind in enumerate(kinds.split(","))}
            for _ in range(2):
                for place, kind in pending.items():
                    port.send(question(f"app{number}.example.org", kind, 100 * number + place))
                with contextlib.suppress(OSError):
                    while pending:
                        reply = port.recv(4096)
                        pending.pop(struct.unpack("!H", reply[:2])[0] - 100 * number)
                        if reply[2] & 2:
                            with contextlib.suppress(OSError), socket.create_connection((host, 53), float(wait)):
                                pass
                if not pending:
                    break


def connect(
    action: str, host: str, port: str, count: str, seconds: str, pause: str = "0", between: str = "0.15"
) -> None:
    """Makes connections, each in a thread of its own; `seconds` until it gives up."""

    def connection() -> None:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), float(seconds)) as to:
            ASKS[action](to, float(pause))

    threads = []
    for _ in range(int(count)):
        threads.append(threading.Thread(target=connection))
        threads[-1].start()
        time.sleep(float(between))
    for thread in threads:
        thread.join()


def ask(to: socket.socket, pause: float = 0) -> None:
    to.sendall(REQUEST)
    to.recv(4096)
    time.sleep(pause)


def ask_again(to: socket.socket, pause: float) -> None:
    ask(to, pause)
    ask(to)


def wait_for_answer(to: socket.socket, pause: float) -> None:
    to.settimeout(pause)
    ask(to)


def ask_closed(to: socket.socket, pause: float) -> None:
    ask(to, pause)
    to.sendall(REQUEST)
    to.sendall(REQUEST)
    time.sleep(0.2)


def ask_http(to: socket.socket, _: float) -> None:
    for number in range(8):
        to.sendall(f"POST /order/{number} HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\n\r\n".encode())
        to.recv(4096)


def fetch(to: socket.socket, _: float) -> None:
    """Fetches an object of 200 kB."""
    to.sendall(REQUEST)
    received = 0
    while received < 200_000:
        received += len(to.recv(1 << 20))


def upload(to: socket.socket, pause: float) -> None:
    """Sends 100 kB each second for so many seconds."""
    until = time.monotonic() + pause
    to.setblocking(False)
    while time.monotonic() < until:
        with contextlib.suppress(BlockingIOError):
            to.send(bytes(5000))
        time.sleep(0.05)


#: what a client does with a connection
ASKS: dict[str, Callable[[socket.socket, float], None]] = {
    "asks": ask,
    "asks-again": ask_again,
    "asks-closed": ask_closed,
    "asks-http": ask_http,
    "waits": wait_for_answer,
    "fetches": fetch,
    "uploads": upload,
}


def send_bulk(host: str, port: str, size: str, rate: str = "0") -> None:
    """Sends bytes, at a rate in bytes/s, or as fast as it can."""
    to = socket.create_connection((host, int(port)))
    began, sent, per_second = time.monotonic(), 0, float(rate)
    while sent < float(size):
        to.sendall(bytes(14480))
        sent += 14480
        if per_second:
            time.sleep(max(began + sent / per_second - time.monotonic(), 0))
    to.shutdown(socket.SHUT_WR)
    to.recv(1)


def send_in_turn(host: str, port: str, size: str, rate: str, count: str, between: str) -> None:
    """Sends by several connections, which begin one after another and overlap."""
    threads = []
    for _ in range(int(count)):
        threads.append(threading.Thread(target=send_bulk, args=(host, port, size, rate)))
        threads[-1].start()
        time.sleep(float(between))
    for thread in threads:
        thread.join()


def checksum(octets: bytes) -> int:
    total = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def flood(host: str, count: str, seconds: str) -> None:
    """SYNs of as many addresses."""
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    target = socket.inet_aton(host)
    for i in range(int(count)):
        source = socket.inet_aton(f"198.51.100.{1 + i % 250}")
        tcp = struct.pack("!HHIIBBHHH", 1024 + i, 443, 1000 * i, 0, 5 << 4, 2, 64240, 0, 0)
        pseudo = source + target + struct.pack("!HH", 6, len(tcp))
        tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
        raw.sendto(struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, i, 0, 64, 6, 0, source, target) + tcp, (host, 0))
        time.sleep(float(seconds) / int(count))


def fan_out(hosts: str, rounds: str, size: str) -> None:
    """Asks many servers at the same time, and again once all have answered."""
    connections = [socket.create_connection((f"10.77.2.{3 + number}", 443), 5) for number in range(int(hosts))]
    for _ in range(int(rounds)):
        for to in connections:
            to.sendall(REQUEST)
        for to in connections:
            left = int(size)
            while left:
                left -= len(to.recv(min(left, 1 << 20)))
        time.sleep(0.1)


def send_datagrams(host: str, count: str, large: str, wait: str = "0.1") -> None:
    """Requests of 200 bytes and of a large size in turn, which a server may answer."""
    port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    port.settimeout(float(wait))
    for number in range(int(count)):
        port.sendto(bytes(int(large) if number % 2 else 200), (host, 6000))
        with contextlib.suppress(OSError):
            port.recv(4096)


def echo_datagrams() -> None:
    """Answers each datagram by 50 bytes."""
    port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    port.bind(("", 6000))
    ready()
    while True:
        port.sendto(bytes(50), port.recvfrom(65_535)[1])


def trust_nobody(host: str, count: str) -> None:
    """TLS handshakes with a server whose certificate no authority signed."""
    context = ssl.create_default_context()
    for _ in range(int(count)):
        with contextlib.suppress(OSError), socket.create_connection((host, 443), 5) as to:
            context.wrap_socket(to, server_hostname="app.example")
        time.sleep(0.05)


def discover(count: str) -> None:
    """DHCP Discovers, one a second."""
    port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    port.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    port.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
    port.bind(("", 68))
    hardware = bytes.fromhex("02005e000007")
    for number in range(int(count)):
        head = struct.pack("!4BIHH16s16s", 1, 1, 6, 0, 0x1234, number, 0x8000, b"", hardware)
        options = bytes.fromhex("63825363350101ff")
        port.sendto(head + bytes(192) + options, ("255.255.255.255", 67))
        time.sleep(1.0)


def reuse_port(host: str) -> None:
    """Loses its connection without a word, and connects from the same port again."""

    def connected() -> socket.socket:
        to = socket.socket()
        to.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        to.bind(("", 40_000))
        to.connect((host, 443))
        ask(to)
        return to

    for _ in range(4):
        to = connected()
        subprocess.run(["nft", "-f", "-"], input=SILENCE, text=True, check=True, timeout=30)
        linger(to)
        subprocess.run(["nft", "delete", "table", "ip", "silence"], check=True, timeout=30)
    connected().close()


SILENCE = """
add table ip silence
add chain ip silence out { type filter hook output priority 0; }
add rule ip silence out tcp flags & (fin | rst) != 0 drop
"""


def prefer_ipv6(count: str) -> None:
    """Resolves a name, then connects by IPv6 and 250 ms later by IPv4, as browsers do."""
    for number in range(int(count)):
        ask_names("10.77.2.2", "1", "1", "1,28")
        six = socket.socket(socket.AF_INET6)
        six.setblocking(False)
        six.connect_ex(("fd00:2::2", 443))
        time.sleep(0.25)
        connect("asks", "10.77.2.2", "443", "1", "2", between="0")
        six.close()
        time.sleep(0.1 * (number + 1))


def keep_pinging(host: str, gap: str) -> None:
    ready()
    echo_requests(host, "600", gap)


def echo_requests(host: str, count: str, gap: str) -> None:
    subprocess.run(["ping", "-q", "-c", count, "-i", gap, "-W", "1", host], capture_output=True, timeout=60)


PROGRAMS: dict[str, Callable[..., None]] = {
    "ask-names": ask_names,
    "connect": connect,
    "discover": discover,
    "echo": echo_datagrams,
    "fan-out": fan_out,
    "flood": flood,
    "ping": echo_requests,
    "pings": keep_pinging,
    "prefer-ipv6": prefer_ipv6,
    "reuse-port": reuse_port,
    "send": send_bulk,
    "send-in-turn": send_in_turn,
    "send-datagrams": send_datagrams,
    "serve": serve,
    "serve-names": serve_names,
    "serve-tls": serve_tls,
    "trust-nobody": trust_nobody,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
