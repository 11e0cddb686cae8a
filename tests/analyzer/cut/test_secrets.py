# SPDX-License-Identifier: Apache-2.0
"""Decryption secrets of real TLS: Wireshark decrypts what was cut from a capture that has them."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import threading
from pathlib import Path

import needs
import wiretale
from wiretale.pytest import Recording

pytestmark = needs.marked(needs.root(), needs.programs("editcap", "openssl", "tshark"))

PATHS = ("/first", "/second", "/third")


def certificate_of(folder: Path) -> tuple[Path, Path]:
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 9 -subj /CN=app.example"
    subprocess.run([*words.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True, timeout=60)
    return certificate, key


def answer(listener: socket.socket, context: ssl.SSLContext) -> None:
    for _ in PATHS:
        with context.wrap_socket(listener.accept()[0], server_side=True) as to:
            to.recv(1000)
            to.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            with contextlib.suppress(OSError):
                to.unwrap()


def recorded(folder: Path, version: ssl.TLSVersion) -> Path:
    """Returns a capture of a request in each of three connections, with the secrets of all."""
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    certificate, key = certificate_of(folder)
    server.load_cert_chain(certificate, key)
    client.load_verify_locations(certificate)
    client.minimum_version = client.maximum_version = version
    client.keylog_filename = str(folder / "keys")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = listener.getsockname()
        threading.Thread(target=answer, args=(listener, server), daemon=True).start()
        with Recording(folder / "plain.pcapng", "lo", None, f"tcp port {place[1]}"):
            for path in PATHS:
                with client.wrap_socket(socket.create_connection(place, 60), server_hostname="app.example") as to:
                    to.sendall(f"GET {path} HTTP/1.1\r\nHost: app.example\r\n\r\n".encode())
                    assert to.recv(1000).endswith(b"ok")
                    to.unwrap()
    made = folder / "capture.pcapng"
    words = ["editcap", "--inject-secrets", f"tls,{folder / 'keys'}", folder / "plain.pcapng", made]
    subprocess.run(words, check=True, capture_output=True, timeout=60)
    return made


def decrypted(path: Path, port: int | None) -> list[str]:
    """Returns the requests that Wireshark reads in a capture."""
    words = ["tshark", "-r", str(path), "-d", f"tls.port=={port},http", "-Y", "http.request", "-T", "fields"]
    done = subprocess.run([*words, "-e", "http.request.uri"], check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.split()


def test_wireshark_decrypts_the_flow_that_was_cut(tmp_path: Path) -> None:
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        folder = tmp_path / version.name
        folder.mkdir()
        capture = recorded(folder, version)
        flows = wiretale.analyze(capture).flows.rows()
        assert [row["application"] for row in flows] == ["tls"] * 3
        port = flows[0]["destination_port"]
        assert decrypted(capture, port) == list(PATHS) and decrypted(folder / "plain.pcapng", port) == []
        for name, requests in (("cut.pcapng", ["/second"]), ("cut.pcap", [])):
            assert decrypted(wiretale.cut(capture, output=folder / name, flows=[1]).path, port) == requests
