# SPDX-License-Identifier: Apache-2.0
"""Rows of exchanges, compared with the logs of the client that asked and of the server that answered."""
