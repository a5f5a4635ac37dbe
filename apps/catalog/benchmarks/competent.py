"""A scripted model that knows its trade and works from the records in its request alone: the pipeline's ceiling.

It stands in for a good language model. It is given nothing but requests, and imports nothing of the catalog: what was
planted where, it cannot know.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from interlock.models import Proposal, Reply, Request

_TYPES = {
    "press": "push", "push": "push", "dip": "push", "overhead": "push", "row": "pull", "pull": "pull", "chin": "pull",
    "pulldown": "pull", "shrug": "pull", "curl": "flexion", "deadlift": "hinge", "swing": "hinge", "squat": "squat",
    "lunge": "squat", "carry": "carry", "walk": "carry", "twist": "rotation", "rotation": "rotation", "rotational": "rotation",
    "extension": "extension", "kickback": "extension", "abduction": "abduction", "adduction": "adduction",
}  # fmt: skip
_COMPOUND = {"press", "row", "squat", "deadlift", "lunge", "pull", "dip", "push"}
_GROUPS = {
    "pectorals": "chest", "serratus": "chest", "front-delts": "shoulders", "side-delts": "shoulders", "rear-delts": "shoulders",
    "rotator-cuff": "shoulders", "biceps": "arms", "brachialis": "arms", "triceps": "arms", "forearms": "arms", "lats": "back",
    "upper-back": "back", "traps": "back", "lower-back": "back", "neck": "back", "abs": "core", "obliques": "core",
    "deep-core": "core",
}  # fmt: skip


class Competent:
    """Answers as a careful person would who knows exercises and reads the records."""

    name, instructable = "competent", True

    async def reply(self, request: Request) -> Reply:
        """One report."""
        content = json.loads(request.messages[0].text)
        made = {
            "report_issues": _issues,
            "propose_changes": _changes,
            "propose_actions": _actions,
        }[str(request.force)](content)
        return Reply(proposals=(Proposal(str(request.force), made),))

    async def close(self) -> None:
        """Nothing is held."""


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _base(name: str) -> str:
    return name.partition(" (")[0]


def _issues(content: Any) -> dict[str, Any]:
    exercises = {item["id"]: item for item in content["exercises"]}
    family = content["family"] or {"slug": "", "base_name": ""}
    found = [_judged(exercises, family, item) for item in content["suspicions"]]
    found += _copies(exercises)
    return {"family_slug": family["slug"], "issues": [item for item in found if item is not None]}


def _judged(exercises: dict[str, Any], family: Any, suspicion: Any) -> Any:
    """Whether what looks odd is wrong."""
    exercise, field = exercises.get(suspicion["exercise_id"]), suspicion["field"]
    if exercise is None:
        return None
    words = _words(_base(str(exercise["name"])))
    special = set(words) - set(_words(family["base_name"]))
    if suspicion["code"] == "other_subject":
        wrong = not set(_words(exercise["description"])) & (special or set(words))
        wrong = wrong or not set(words) <= set(_words(exercise["description"]))
    elif suspicion["code"] == "other_equipment":
        wrong = not (exercise["equipment"][0] == "cable" and "rope" in suspicion["evidence"])
    elif field == "movement.type":
        wrong = exercise["movement"]["type"] not in {
            _TYPES[word] for word in words if word in _TYPES and word in special
        }
    elif field == "category":
        wrong = not (exercise["category"] == "compound" and special & _COMPOUND)
    elif field == "muscles.primary":
        wrong = not _related(exercise, [item for item in exercises.values() if item["id"] != exercise["id"]])
    elif field == "merged_into":
        wrong = exercise["description"] == exercises[suspicion["suggestion"]]["description"]
    else:
        wrong = False  # a variant moves in a plane of its own for a reason
    return _issue(exercise["id"], field, suspicion["evidence"]) if wrong else None


def _related(exercise: Any, siblings: list[Any]) -> bool:
    groups = {
        _GROUPS.get(m, "legs")
        for item in siblings
        for m in (*item["muscles"]["primary"], *item["muscles"]["secondary"])
    }
    return any(_GROUPS.get(muscle, "legs") in groups for muscle in exercise["muscles"]["primary"])


def _copies(exercises: dict[str, Any]) -> list[Any]:
    """Two records with the very same description are one exercise; the draft is the worse one."""
    by_text: dict[str, list[Any]] = {}
    for item in exercises.values():
        if isinstance(item["description"], str) and len(item["description"]) > 60:
            by_text.setdefault(item["description"], []).append(item)
    found = []
    for same in by_text.values():
        drafts = [item for item in same if item["status"] == "draft"]
        others = [
            item
            for item in same
            if item["status"] != "draft" and set(_words(_base(item["name"]))) <= set(_words(item["description"]))
        ]
        if len(others) == 1:
            found += [
                _issue(item["id"], "merged_into", "the very same description", others[0]["id"]) for item in drafts
            ]
    return found


def _issue(identity: str, field: str, evidence: str, duplicate_of: str | None = None) -> Any:
    made = {
        "exercise_id": identity,
        "field": field,
        "issue_type": "inconsistent" if field == "merged_into" else "inaccurate",
        "severity": "high",
        "evidence": evidence,
        "confidence": 0.96,
    }
    return made if duplicate_of is None else {**made, "duplicate_of": duplicate_of}


def _changes(content: Any) -> dict[str, Any]:
    exercises = {item["id"]: item for item in content["exercises"]}
    found = []
    for issue in content["issues"]:
        exercise = exercises.get(issue["exercise_id"])
        if exercise is not None:
            for field, value, evidence in _values(issue["field"], exercise, content["siblings"], content["family"]):
                found.append(
                    {
                        "exercise_id": exercise["id"],
                        "field": field,
                        "after": value,
                        "justification": f"{issue['evidence']}; this is what the records say",
                        "evidence": evidence,
                        "confidence": 0.95,
                    }
                )
    return {"family_slug": content["family"]["slug"], "changes": found}


def _values(field: str, exercise: Any, siblings: list[Any], family: Any) -> list[tuple[str, Any, str]]:
    if field == "description":
        return [("description", _described(exercise, family), "record:fields")]
    if field.startswith("muscles"):
        muscles = _most(siblings, lambda item: item["muscles"])
        return [(f"muscles.{name}", value, "siblings:majority") for name, value in muscles.items()] if muscles else []
    names = [field] if "." in field or field not in ("movement", "metadata") else []
    if field == "movement":
        names = ["movement.type", "movement.split"]
    out = []
    for name in names:
        head, _, rest = name.partition(".")
        value = _most(
            siblings, lambda item, head=head, rest=rest: item.get(head, {}).get(rest) if rest else item.get(head)
        )
        if value:
            out.append((name, value, "siblings:majority"))
    return out


def _most(siblings: list[Any], value: Any) -> Any:
    texts = [json.dumps(found, sort_keys=True) for item in siblings if (found := value(item))]
    return json.loads(Counter(texts).most_common(1)[0][0]) if texts else None


def _described(exercise: Any, family: Any) -> str:
    base, muscles = _base(exercise["name"]), exercise["muscles"]
    worked = " and ".join(muscle.replace("-", " ") for muscle in muscles["primary"])
    tool = exercise["equipment"][0].replace("-", " ")
    level = exercise["metadata"].get("level", "beginner")
    return (
        f"The {base} trains the {worked} as a variation of the {family['base_name'].lower()}, loaded with {tool}."
        f" It suits the {level} lifter who keeps every repetition under control."
    )


def _actions(content: Any) -> dict[str, Any]:
    """A search is an alias if all its words are in one name and nothing else comes near."""
    found = []
    for search in content["searches"]:
        near = search["nearest"]
        clear = near and near[0]["score"] >= 0.6 and (len(near) == 1 or near[1]["score"] <= near[0]["score"] - 0.15)
        words = set(_words(search["query"]))
        said = clear and len(words - set(_words(near[0]["name"]))) <= 1
        found.append(
            {
                "query": search["query"],
                "hypothesis": f"people mean {near[0]['name']}" if said else "it cannot be told what is meant",
                "evidence": "searches:nearest_name" if said else "searches:nothing_near",
                "proposed_action": "add_alias" if said else "nothing",
                "exercise_id": near[0]["id"] if said else None,
                "family_slug": near[0]["family"] if said else None,
                "rationale": "its words are in that name and in no other" if said else "too far from every name",
                "confidence": 0.9 if said else 0.3,
                "apply": bool(said),
            }
        )
    return {"actions": found}
