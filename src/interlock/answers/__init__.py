"""Turns: an answer leaves only when the tools it needed succeeded and its figures are traced to their results."""

from interlock.answers.agent import Agent, model_calls
from interlock.answers.answers import Answers
from interlock.answers.app import App
from interlock.answers.asked import Again, Asked
from interlock.answers.delegation import delegation
from interlock.answers.intents import Classified, Intent
from interlock.answers.ladder import TurnOutcome, TurnState, next_step
from interlock.answers.requirements import Requirement, all_of, any_of, need
from interlock.answers.result import Action, TurnResult, TurnStatus
from interlock.answers.runner import run_turn
from interlock.answers.sessions.exchanges import Exchange, RecentSession
from interlock.answers.turn import Turn
from interlock.models import Proposal

__all__ = [
    "Action",
    "Again",
    "Agent",
    "Answers",
    "App",
    "Asked",
    "Classified",
    "Exchange",
    "Intent",
    "Proposal",
    "RecentSession",
    "Requirement",
    "Turn",
    "TurnOutcome",
    "TurnResult",
    "TurnState",
    "TurnStatus",
    "all_of",
    "any_of",
    "delegation",
    "model_calls",
    "need",
    "next_step",
    "run_turn",
]
