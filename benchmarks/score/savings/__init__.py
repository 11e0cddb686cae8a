# SPDX-License-Identifier: Apache-2.0
"""What a finding says that its advice saves, compared with the same transfer without the fault."""
