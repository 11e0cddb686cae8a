# SPDX-License-Identifier: Apache-2.0
"""The runs: scenarios, their namespaces and links, both hosts and the trace of the kernel."""
