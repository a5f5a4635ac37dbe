"""What an answer says was done, held against the records: clause by clause, with who did it and whether it was done."""

from interlock.answers.statements.check import TurnRecords, check_safely, check_statements
from interlock.answers.statements.deeds import EffectStatement
from interlock.answers.statements.effects import (
    EffectState,
    TurnEffect,
    closing_line,
    effects_of,
    with_closing_line,
    without_closing_line,
)

__all__ = [
    "EffectState",
    "EffectStatement",
    "TurnEffect",
    "TurnRecords",
    "check_safely",
    "check_statements",
    "closing_line",
    "effects_of",
    "with_closing_line",
    "without_closing_line",
]
