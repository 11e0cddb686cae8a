# SPDX-License-Identifier: Apache-2.0
"""Two runs compared measure by measure."""
