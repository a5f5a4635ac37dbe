"""Names of people and services, and when two of them are the same one.

Whoever asks must not pass for somebody else by a capital letter, a space or a letter of another alphabet, and so decide
what they asked for.
"""

from __future__ import annotations

import os
import pwd
import unicodedata

from interlock.errors import ConfigError

OURS = ("os", "token")
"""Kinds of names that nobody can give: the operating system says the one, a verified token the other."""
_LONGEST = 256
_LAST_LATIN = 0x17F
# Scripts that people write names in without marks, by how Unicode names their letters. In others whole names can be
# written that read as Latin ones (Cherokee, Lisu, Coptic, Armenian), or nobody has looked: they are refused.
_TOGETHER = (
    frozenset({"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"}),
    frozenset({"CJK", "HANGUL"}),
    frozenset({"CJK", "BOPOMOFO"}),
)
"""Alphabets that languages write in one word."""
_SCRIPTS = (
    "LATIN ", "ARABIC LETTER ", "CJK UNIFIED ", "CYRILLIC ", "DEVANAGARI LETTER ", "GEORGIAN LETTER ", "GREEK ",
    "HANGUL SYLLABLE ", "HEBREW LETTER ", "HIRAGANA LETTER ", "KATAKANA LETTER ", "KATAKANA-HIRAGANA ",
    "THAI CHARACTER ",
)  # fmt: skip
# Their letters that look like Latin ones, by the confusables of Unicode (UTS 39) and a few more; a name that is made of
# these alone reads as another name.
_LOOKALIKES = frozenset(
    "аеорсухіјѕһԁԛԝѵАВЕІЈКМНОРСТХУЅБЗЫЬЮбгкћѡѢѣѲѳѴѽҌҍґғҘҚқҞҟҢҪҫҬҮүҰұҲҽҿӀӇӉӍӏӔӕӠӨөԌԜꙄꙇꚕꚘꚙ"  # Cyrillic
    "οινυωαρκτχγεϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧͿΘβηθσϜϷϸϺᴦ"  # Greek
    "וטןסاهٳھہەۿॽყჿノ丶丿"
)
# Letters and digits of Latin that read as others of it, by the same confusables and a few more, in small letters.
_READ_AS = str.maketrans(
    {"0": "o", "1": "l", "m": "rn", "\u0131": "i", "\u0138": "k", "\u011b": "\u0115", "æ": "ae", "œ": "oe"}
)
_CAPITAL_I = ({"I", "i"}, {"I", "l"})
"""It is an i, and reads as an l."""


def default_principal() -> str:
    """The operating-system user, by the system's own account and not by a variable that anybody can set."""
    try:
        return f"os:{pwd.getpwuid(os.getuid()).pw_name}"
    except (KeyError, OSError):
        return f"os:{os.getuid()}"


def kind_of(name: str) -> str:
    """What stands before the colon: `os`, `token`, or a kind of names that an application gives."""
    kind, colon, _ = name.partition(":")
    return normal_name(kind) if colon else ""


def normal_name(name: str) -> str:
    """The form in which names are compared."""
    return unicodedata.normalize("NFKC", name).casefold().strip()


def is_same(one: str | None, other: str | None) -> bool:
    """Whether two names are one person's or service's."""
    return one is not None and other is not None and normal_name(one) == normal_name(other)


def reads_like(one: str, other: str) -> bool:
    """Whether a person may take one name for the other: they are the same, or differ in letters that look alike."""
    first, second = _as_read(one), _as_read(other)
    return len(first) == len(second) and all(
        letter == twin or {letter, twin} in _CAPITAL_I for letter, twin in zip(first, second, strict=True)
    )


def _as_read(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name).strip()
    return "".join("I" if letter == "I" else letter.casefold().translate(_READ_AS) for letter in plain)


def check_name(name: str) -> None:
    """Refuse a name that could be read as another one."""
    if not isinstance(name, str) or not name or not name.isprintable() or len(name) > _LONGEST:
        raise ConfigError(f"{name!r:.80} cannot be a name: use printable text of at most {_LONGEST} characters")
    if name != " ".join(name.split()):
        raise ConfigError(f"{name!r} has spaces where nobody sees them; write the name without")
    kind, colon, rest = name.partition(":")
    if colon and (not kind.isascii() or kind != kind.lower() or not rest.strip() or rest != rest.strip()):
        raise ConfigError(f"{name!r}: a name is KIND:NAME, with a kind in small letters, as in 'user:ann'")
    _refuse_disguise(name, [letter for letter in unicodedata.normalize("NFC", name) if not _is_plain(letter)])


def check_actor(name: str) -> None:
    """Refuse the name of an actor that reads as another one: rules and grants compare it letter by letter."""
    if not isinstance(name, str) or not name or not name.isprintable():
        raise ConfigError(f"{name!r:.80} cannot be the name of an actor: use printable text")
    if name != " ".join(name.split()):
        raise ConfigError(f"the actor {name!r} has spaces where nobody sees them; write the name without")
    if name.isascii():
        return
    if name != unicodedata.normalize("NFC", name):
        raise ConfigError(f"the actor {name!r} has letters in parts that there are whole (Unicode NFC): write them so")
    _refuse_disguise(name, [letter for letter in name if not letter.isascii() and not _is_plain(letter)])


def _refuse_disguise(name: str, odd: list[str]) -> None:
    """Refuse a name with odd characters, or with letters that are not what they look like."""
    if odd:
        raise ConfigError(f"{name!r} has {odd[0]!a}, which reads as something else or as nothing: write it plainly")
    kind, colon, rest = name.partition(":")
    letters = [letter for letter in (rest if colon and kind.isascii() else name) if letter.isalpha()]
    scripts = {_script(letter) for letter in letters}
    mixed = len(scripts) > 1 and not any(scripts <= together for together in _TOGETHER)
    if mixed or (letters and all(_base(letter) in _LOOKALIKES for letter in letters)):
        raise ConfigError(f"{name!r} has letters of several alphabets, or ones that look like others: write it plainly")


def check_vouched(name: str, own: str) -> None:
    """Refuse a name that a program gives for somebody and that only the system or a token can say."""
    check_name(name)
    if kind_of(name) in OURS and name != own:
        raise ConfigError(
            f"{name!r} cannot be given: an os: name is what the operating system says (here {default_principal()!r}),"
            " a token: name comes with a token; names that a program gives have another kind, as in 'user:ann'"
        )


_SIGNS = " :._-@+'/(),&|=#%~{}[]!$^;?\\"
"""Signs that names may have: those that people and identity providers use. Not `*`, which stands for everybody, nor
quotes and angle brackets."""


def _is_plain(letter: str) -> bool:
    """Whether a character is what it looks like: a letter (of Latin, one that languages use), a digit or a sign.

    Marks, blanks of other kinds and letters for phonetics are not.
    """
    if letter.isascii():
        return letter.isalnum() or letter in _SIGNS
    if _script(letter) == "LATIN":
        return letter.isalpha() and ord(letter) <= _LAST_LATIN
    # Digits of other scripts pass for letters and digits of this one.
    return letter.isalpha() and unicodedata.name(letter, "?").startswith(_SCRIPTS)


def _base(letter: str) -> str:
    """A letter without its marks, and without a form that only its place in a word gives it."""
    return unicodedata.normalize("NFKD", letter)[0]


def _script(letter: str) -> str:
    """The alphabet of a letter, by the first word of its name."""
    return unicodedata.name(letter, "?").partition(" ")[0]
