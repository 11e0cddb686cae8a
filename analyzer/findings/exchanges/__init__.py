# SPDX-License-Identifier: Apache-2.0
"""Requests and their answers: turns of TCP connections, DNS and TLS."""
