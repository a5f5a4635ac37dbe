"""`Agent`: who answers, with which tools, what its answers need, and how long it may try."""

from __future__ import annotations

from interlock.answers.grounding import Vocabulary
from interlock.answers.intents import Classifier, Intent
from interlock.answers.requirements import Need, Requirement, count_calls, leaves
from interlock.answers.wishes import Wish
from interlock.answers.workflows import Workflow
from interlock.errors import ConfigError
from interlock.values import Value
from interlock.wrong_values import check_fields, require_kind

ENFORCEMENT = ("enforce", "observe")


class Agent(Value, frozen=True):
    """One agent. What it must do is data, so that its prompt and what is enforced cannot disagree."""

    name: str
    tools: tuple[str, ...]
    """The tools that it is shown and may call."""
    intents: tuple[Intent, ...] = ()
    default: Requirement | str | None = None
    """What an answer needs if nothing is recognised (and it is not conversation); unset: one of the intents."""
    purpose: str = ""
    """A sentence or two: who it is."""
    rules: tuple[str, ...] = ()
    """Rules of its own, beside those that hold for every agent."""
    chat: tuple[str, ...] = ()
    """More phrases of conversation, each as a whole: those of another language, say. They are not learned from."""
    max_retries: int = 2
    deadline_s: float = 30.0
    enforcement: str = "enforce"
    """enforce, or observe: record what would have happened, and mark every answer unverified."""
    grounding: bool = True
    """Whether figures are traced; False only for agents that compute nothing and cite nothing."""
    semantic: bool = True
    vocabulary: Vocabulary | None = None
    """The words of its field (units, citations), where those of everyday English do not do."""
    judge: str = ""
    """A second model (`provider:name`) that is asked whether the results entail each sentence; empty: none is."""
    workflow: Workflow | None = None
    """Its way of working, where a turn does not say another: budgets, phases, when to stop."""
    works: tuple[Workflow, ...] = ()
    """Ways of working that it offers, each by its name: `work="research"`, `interlock ask APP … --work research`."""
    wishes: tuple[Wish, ...] = ()
    """What users may ask a turn not to do, and which tools are withheld then."""

    def __post_init__(self) -> None:
        check_fields(self, f"agent {self.name!r:.80}")
        if self.enforcement not in ENFORCEMENT:
            raise ConfigError(f"{self.name}: enforcement is {' or '.join(ENFORCEMENT)}, not {self.enforcement!r}")
        if self.max_retries < 0 or self.deadline_s <= 0:
            raise ConfigError(f"{self.name}: max_retries must not be negative, and deadline_s must be above 0")
        names = [one.name for one in self.works]
        if len(set(names)) < len(names):
            raise ConfigError(f"{self.name}: two of its ways of working have one name: {', '.join(sorted(names))}")
        needed = [leaf.tool for requirement in self.requirements() for leaf in leaves(requirement)]
        strange = sorted(set(needed) - set(self.tools))
        if strange:
            raise ConfigError(f"{self.name}: it requires {', '.join(strange)}, which it does not have")

    def work(self, name: str) -> Workflow:
        """The way of working that it offers under a name."""
        known = {one.name: one for one in (*self.works, *([] if self.workflow is None else [self.workflow]))}
        if name not in known:
            what = f"it offers {', '.join(sorted(known))}" if known else "it offers none (Agent.works)"
            raise ConfigError(f"{self.name!r} has no way of working {name!r}; {what}")
        return known[name]

    def requirements(self) -> tuple[Requirement, ...]:
        """Everything that its answers may need."""
        found = [intent.requirement for intent in self.intents]
        if self.default is not None:
            found.append(Need(tool=self.default) if isinstance(self.default, str) else self.default)
        return tuple(found)

    def classifier(self) -> Classifier:
        """What decides which of them holds for a text."""
        return Classifier(self.intents, default=self.default, chat=self.chat, semantic=self.semantic)


def require_agent(agent: object) -> None:
    """Refuse what is no agent, where one is taken: its name, for one."""
    require_kind("agent=", agent, Agent, "an interlock.answers.Agent")


def model_calls(agent: Agent, requirement: Requirement, rounds: int = 0) -> int:
    """The most model calls that a turn can take: the first, retries, one forced for each required call, the last.

    `rounds` is how many rounds of tool calls a mode allows, if that is more than the tools that are required.
    """
    return 2 + agent.max_retries + max(1, count_calls(requirement), rounds)
