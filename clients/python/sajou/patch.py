"""JSON Patch (RFC 6902), with the operations of the protocol: add, remove and replace."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence

from .errors import ProtocolError

__all__ = ["PatchError", "apply"]


class PatchError(ProtocolError):
    """A patch does not apply to the value."""


def apply(value: Any, patch: Sequence[Mapping[str, Any]]) -> Any:
    """Return the value after a patch. The value itself does not change: containers on the way
    to a change are copied, once for a patch, and all others are shared."""
    return _Patching(value).all(patch)


class _Patching:
    def __init__(self, value: Any) -> None:
        self.root = value
        self.own: Dict[int, Any] = {}  # the containers that this patch has made, by id

    def all(self, patch: Sequence[Mapping[str, Any]]) -> Any:
        for i, op in enumerate(patch):
            try:
                self.one(op)
            except (KeyError, IndexError, TypeError, ValueError) as e:
                raise PatchError(f"operation {i} of the patch does not apply: {e}") from e
        return self.root

    def mine(self, container: Any) -> Any:
        """Return a container that may be changed: itself, or a copy."""
        if id(container) in self.own:
            return container
        if not isinstance(container, (dict, list)):
            raise ValueError("the path leads into a scalar")
        copy = container.copy()
        self.own[id(copy)] = copy
        return copy

    def one(self, op: Mapping[str, Any]) -> None:
        kind, path = op["op"], _pointer(op["path"])
        if kind not in ("add", "remove", "replace"):
            raise ValueError(f"unknown operation {kind!r}")
        value = None if kind == "remove" else op["value"]
        if not path:
            if kind == "remove":
                raise ValueError("the whole value cannot be removed")
            self.root = value
            return
        self.root = at = self.mine(self.root)
        for token in path[:-1]:
            key = _key(at, token)
            at[key] = child = self.mine(at[key])
            at = child
        last = path[-1]
        if kind == "add":
            if isinstance(at, list):
                at.insert(len(at) if last == "-" else _index(last, len(at)), value)
            else:
                at[last] = value
            return
        key = _key(at, last)
        if kind == "replace":
            at[key]  # it must be there
            at[key] = value
        else:
            del at[key]


def _pointer(path: str) -> List[str]:
    if path == "":
        return []
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is not a JSON Pointer")
    return [t.replace("~1", "/").replace("~0", "~") for t in path[1:].split("/")]


def _key(container: Any, token: str) -> Any:
    return _index(token, len(container) - 1) if isinstance(container, list) else token


def _index(token: str, most: int) -> int:
    if not (token.isascii() and token.isdigit()) or (len(token) > 1 and token[0] == "0") or len(token) > 9 or int(token) > most:
        raise IndexError(f"there is no element {token!r}")
    return int(token)
