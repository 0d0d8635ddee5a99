"""A client of Sajou's server: agents, simulations, directors and recorders.

It needs Python 3.9 and its standard library alone. docs/protocol.md describes what is sent.

    Server       the address and the token
    Agent        sees, acts and generates
    Simulation   holds the time of a session
    Director     guides an episode
    Recorder     records signals
    World        begins worlds and registers agents
    ParallelEnv, AECEnv   environments in the form of PettingZoo
"""

from .agent import Agent
from .director import Director
from .environment import AECEnv, ParallelEnv, Spec, Transition
from .errors import ConnectionEnded, Problem, ProtocolError, RequestFailed, SajouError, Stopped
from .exact import canonical, digest
from .generation import Ended, Generation, Refused
from .messages import Effect, Observation, Outcome, Rejection, Ticked, View
from .recording import Receipt, Recorder, signal
from .server import Backoff, Server
from .simulation import Simulation
from .world import World, WorldState

__all__ = [
    "AECEnv", "Agent", "Backoff", "ConnectionEnded", "Director", "Effect", "Ended", "Generation", "Observation", "Outcome", "ParallelEnv",
    "Problem", "ProtocolError", "Receipt", "Recorder", "Refused", "Rejection", "RequestFailed", "SajouError", "Server", "Simulation",
    "Spec", "Stopped", "Ticked", "Transition", "View", "World", "WorldState", "canonical", "digest", "signal",
]  # fmt: skip
