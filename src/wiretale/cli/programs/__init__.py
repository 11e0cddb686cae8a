# SPDX-License-Identifier: Apache-2.0
"""The options of the C programs, a file for each command. declaration.py says how one is added."""
