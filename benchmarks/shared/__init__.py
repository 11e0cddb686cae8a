# SPDX-License-Identifier: Apache-2.0
"""Network namespaces and Markdown tables of the benchmarks."""
