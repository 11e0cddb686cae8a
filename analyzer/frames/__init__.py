# SPDX-License-Identifier: Apache-2.0
"""Single frames of a capture: their bytes, and the tree into which tshark dissects them."""
