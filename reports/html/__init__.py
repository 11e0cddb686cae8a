# SPDX-License-Identifier: Apache-2.0
"""HTML reports: one offline page per command."""
