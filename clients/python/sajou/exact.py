"""JSON with exact numbers, its canonical form, and the digest of a view.

2 is an int and 2.0 a float, as in Python's own json, so a value that was parsed keeps the
difference that digests depend on.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any, Iterable, List, Mapping, Tuple

from .errors import ProtocolError

__all__ = ["MAX_DEPTH", "canonical", "digest", "parse"]

#: Values are nested at most so deep: 512 levels of a view, and those of the message around it.
MAX_DEPTH = 516


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse)


def parse(text: str) -> Any:
    """Return the value of a JSON text. Raise ProtocolError if it is not one, or too deep."""
    try:
        value = _decoder.decode(text)
    except (ValueError, RecursionError) as e:
        raise ProtocolError(f"not a JSON text: {e}") from e
    _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    stack: List[Tuple[Any, int]] = [(value, 0)]
    while stack:
        node, depth = stack.pop()
        children: Iterable[Any]
        if isinstance(node, dict):
            children = node.values()
        elif isinstance(node, list):
            children = node
        else:
            continue
        if depth == MAX_DEPTH:
            raise ProtocolError(f"JSON nested deeper than {MAX_DEPTH} levels")
        for child in children:
            if isinstance(child, (dict, list)):
                stack.append((child, depth + 1))


_escapes = {i: f"\\u{i:04x}" for i in range(0x20)}
_escapes.update({ord('"'): '\\"', ord("\\"): "\\\\"})
_escapes.update({8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r"})


def _text(s: str) -> str:
    return '"' + s.translate(_escapes) + '"'


def _float(f: float) -> str:
    """The shortest digits: plain from 1e-5 up to 1e16, else with an exponent."""
    if not math.isfinite(f):
        raise ValueError(f"{f} is not JSON")
    sign = "-" if math.copysign(1, f) < 0 else ""
    if f == 0:
        return sign + "0.0"
    mantissa, _, exponent = repr(abs(f)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    # The value is 0.DIGITS times ten to the power of point.
    digits = whole + fraction
    point = len(whole) + int(exponent or 0)
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    if point <= -5 or point > 16:
        fraction = "." + digits[1:] if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}e{point - 1}"
    if point <= 0:
        return sign + "0." + "0" * -point + digits
    if point >= len(digits):
        return sign + digits + "0" * (point - len(digits)) + ".0"
    return sign + digits[:point] + "." + digits[point:]


def canonical(value: Any) -> str:
    """Return the canonical form of a value: members in the order of the code points of their
    names, no blanks, floats always with a point or an exponent."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float(value)
    parts = []
    if isinstance(value, dict):  # loops, not generators: a level of nesting is one level of the stack
        for name in sorted(value):
            parts.append(_text(name) + ":" + canonical(value[name]))
        return "{" + ",".join(parts) + "}"
    if isinstance(value, (list, tuple)):
        for element in value:
            parts.append(canonical(element))
        return "[" + ",".join(parts) + "]"
    raise ValueError(f"a {type(value).__name__} is not JSON")


def digest(agent_id: str, view: Mapping[str, Any]) -> str:
    """Return the context_digest of a view."""
    whole = {
        "agent_id": agent_id,
        "visible_entities": view["visible_entities"],
        "visible_relationships": view["visible_relationships"],
    }
    try:
        return hashlib.sha256(canonical(whole).encode()).hexdigest()
    except (RecursionError, UnicodeEncodeError) as e:
        raise ProtocolError(f"the view has no digest: {e}") from e
