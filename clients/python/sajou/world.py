"""Setting up the world of a session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Sequence

from .messages import member, number
from .server import Server

__all__ = ["World", "WorldState"]


@dataclass(frozen=True)
class WorldState:
    """The time authority of a session (wall, sim, manual), session time in seconds, and the newest entry."""

    time: str
    sim_time: float
    seq: int


class World:
    """The world of one session; the token needs the scope define."""

    def __init__(self, server: Server, session: str) -> None:
        self._server = server
        self._session = session

    def begin(
        self, *, time: Optional[str] = None, config: Optional[Mapping[str, Any]] = None, world: Optional[Mapping[str, Any]] = None
    ) -> WorldState:
        """Begin the session if it is new, with a time authority (wall, sim or manual), configure its
        world, and bring the entities and relationships to begin with into it."""
        given = {"time": time, "config": config, "world": world}
        body = {name: value for name, value in given.items() if value is not None}
        a = self._server.request("PUT", self._server.path(self._session, "world"), body)
        return WorldState(member(a, "time", str), number(a, "sim_time"), member(a, "seq", int))

    def register(
        self, agent: str, *, policy: Optional[Mapping[str, Any]] = None, permissions: Optional[Sequence[str]] = None,
        class_name: Optional[str] = None,
    ) -> None:  # fmt: skip
        """Register an agent. One that is registered gets the new policy and a full view."""
        body: Dict[str, Any] = {} if policy is None else {"policy": policy}
        if permissions is not None:
            body["permissions"] = list(permissions)
        if class_name is not None:
            body["class"] = class_name
        self._server.request("PUT", self._server.path(self._session, "agents", agent), body)

    def remove(self, agent: str) -> None:
        """Let an agent leave the world."""
        self._server.request("DELETE", self._server.path(self._session, "agents", agent))

    def view(self, agent: str) -> Dict[str, Any]:
        """Return the view that was delivered to an agent, with its view_seq and context_digest. The
        token needs the scope read, or act as the agent."""
        view: Dict[str, Any] = self._server.request("GET", self._server.path(self._session, "agents", agent, "view"), repeat=True)
        return view
