"""Whether a text is a summary of another: shorter, and made of what stands there. What it leaves out is not judged."""

from __future__ import annotations

from interlock.answers.work.plans import content_words
from interlock.values import Json

_FEWEST = 5
"""Words of a summary; of fewer nobody could say what they sum up."""
_SHORT = 40
"""A source of so few words may be kept as it is."""
_MOST_SHARE = 0.5
_OWN_SHARE = 0.5


def why_no_summary(kept: str, source: str) -> str:
    """What is wrong with a text as a summary of a source; empty if nothing is."""
    words, said = kept.split(), source.split()
    if not said:
        return "nothing has been read yet that could be summarised"
    if len(words) < min(_FEWEST, len(said)):
        return f"a summary of what was read is kept here, and {len(words)} words are none"
    if len(said) > _SHORT and len(words) > len(said) * _MOST_SHARE:
        return (
            f"a summary of what was read is kept here, in at most half of its {len(said):,} words; this has"
            f" {len(words):,}"
        )
    content, known = content_words(kept), set(content_words(source))
    if content and sum(word in known for word in content) < len(content) * _OWN_SHARE:
        return "a summary of what was read is kept here, and most words of this do not stand in it"
    return ""


def longest_text(arguments: Json) -> str:
    """The longest text among the arguments of a call."""
    found, waiting = "", [arguments]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            found = max(found, item, key=len)
        elif isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list | tuple):
            waiting += item
    return found
