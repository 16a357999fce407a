"""How deep values may be nested: as deep as Jackson reads JSON for Apache's converter.

To import this lets Python go as deep. With its own limit, a record nested a few hundred levels deep could be read but
neither be written again nor be sent from an executor to the worker.
"""

from __future__ import annotations

import sys
from typing import Final

DEEPEST: Final = 1000

_CALLS: Final = 6
"""Most calls for one level, of converters, transforms and pickle."""

sys.setrecursionlimit(max(sys.getrecursionlimit(), DEEPEST * _CALLS))
