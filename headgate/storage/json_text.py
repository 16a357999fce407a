"""JSON text of internal topics, byte for byte as Apache's workers write it.

Kafka compares keys by their bytes, and people compare topics by eye. `pipeline` has the same rules for the data of
connectors, in a form made for speed; a test holds the two together.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, NoReturn

_ESCAPED: Final = re.compile('[\x00-\x1f"\\\\\ud800-\udfff\U00010000-\U0010ffff]')
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def dumps(tree: Any) -> bytes:
    """Of strings, whole and finite numbers, booleans, None, lists, and mappings with string keys, in their order."""
    return _written(tree).encode()


def loads(data: bytes) -> Any:
    """Raises ValueError for all that is not JSON."""
    try:
        return json.loads(data, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _written(tree: Any) -> str:
    if isinstance(tree, str):
        return f'"{_ESCAPED.sub(_escape, tree)}"'
    if tree is None:
        return "null"
    if isinstance(tree, bool):
        return "true" if tree else "false"
    if isinstance(tree, int):
        return str(tree)
    if isinstance(tree, float):
        return _double(tree)
    if isinstance(tree, Mapping):
        return f"{{{','.join([f'{_written(key)}:{_written(value)}' for key, value in tree.items()])}}}"
    return f"[{','.join([_written(item) for item in tree])}]"


def _escape(match: re.Match[str]) -> str:
    # What UTF-16 needs two units for becomes two escapes, with capital letters.
    found = match[0]
    units = memoryview(found.encode("utf-16-le", "surrogatepass")).cast("H")
    return _SHORT.get(found) or "".join(f"\\u{unit:04X}" for unit in units)


def _double(value: float) -> str:
    """As Double.toString."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is not JSON")
    # Within these bounds Java and Python agree; outside Java counts in powers of ten.
    if 1e-3 <= abs(value) < 1e7 or value == 0.0:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    if len(digits) == 1:
        # Java takes the nearest number of two digits where one would do: 4.9E-324, not 5.0E-324.
        sign, digits, exponent = Decimal(f"{value:.1e}").as_tuple()
    power = int(exponent) + len(digits) - 1
    return f"{'-' if sign else ''}{digits[0]}.{''.join(map(str, digits[1:])) or '0'}E{power}"
