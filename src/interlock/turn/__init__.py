"""Turns: an answer leaves only when the tools it needed succeeded and its figures are traced to their results."""

from interlock.intents import Classified, Intent
from interlock.models import Proposal
from interlock.requirements import Requirement, all_of, any_of, need
from interlock.turn.agent import Agent, model_calls
from interlock.turn.app import App
from interlock.turn.delegate import delegation
from interlock.turn.drive import drive
from interlock.turn.ladder import TurnOutcome, TurnState, next_step
from interlock.turn.result import Action, TurnResult, TurnStatus
from interlock.turn.turn import Again, Asked, Turn

__all__ = [
    "Action",
    "Again",
    "Agent",
    "App",
    "Asked",
    "Classified",
    "Intent",
    "Proposal",
    "Requirement",
    "Turn",
    "TurnOutcome",
    "TurnResult",
    "TurnState",
    "TurnStatus",
    "all_of",
    "any_of",
    "delegation",
    "drive",
    "model_calls",
    "need",
    "next_step",
]
