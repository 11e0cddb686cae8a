# SPDX-License-Identifier: Apache-2.0
"""Speed and memory of the three programs against others of their kind: `make bench`."""
