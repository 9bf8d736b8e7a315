# SPDX-License-Identifier: Apache-2.0
"""A small sample of agreement.py: some of the programs that can be built here, and libc where its debug file is."""
import agreement

agreement.SYSTEM = agreement.SYSTEM[:1]
agreement.main(["--few", "--programs", "2000", "--system", "5000"])
