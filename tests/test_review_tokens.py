"""Tokens of reviewers: signed JWTs that say who, for which ledger and until when, and nothing else is believed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.audit import load_public_key, make_key
from interlock.errors import ConfigError, NotAllowed
from interlock.review.identity import TokenClaims, authenticate, issue

CLAIMS = TokenClaims(sub="deployer", aud="ledger-1", iat=1_000, exp=2_000)
PAYLOAD = {"sub": "deployer", "aud": "ledger-1", "iat": 1_000, "exp": 2_000, "iss": "interlock"}
NOW_US = 1_500_000_000


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("keys") / "review.key"
    make_key(file)
    return file


@pytest.fixture(scope="module")
def private(key_file: Path) -> Any:
    return load_pem_private_key(key_file.read_bytes(), password=None)


def check(token: str, key_file: Path, *, ledger: str = "ledger-1", now_us: int = NOW_US) -> str:
    return authenticate(token, trusted=(load_public_key(key_file),), ledger=ledger, now_us=now_us)


def pack(data: bytes | Any) -> str:
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def test_a_token_says_who_for_which_ledger_until_when(key_file: Path) -> None:
    token = issue(key_file, CLAIMS)
    assert check(token, key_file) == "token:deployer"
    assert check(f"  {token}\n", key_file, now_us=2_000_000_000 - 1) == "token:deployer"


def test_a_token_is_a_plain_jwt(key_file: Path, private: Ed25519PrivateKey) -> None:
    head, body, signature = (base64.urlsafe_b64decode(part + "==") for part in issue(key_file, CLAIMS).split("."))
    assert json.loads(head) == {"alg": "EdDSA", "typ": "JWT"}
    assert json.loads(body) == {**PAYLOAD, "nbf": 0}
    private.public_key().verify(signature, f"{pack(head)}.{pack(body)}".encode())


def test_one_of_several_keys_is_enough(key_file: Path, tmp_path: Path) -> None:
    others = []
    for number in range(3):
        make_key(tmp_path / f"{number}.key")
        others.append(load_public_key(tmp_path / f"{number}.key"))
    trusted = (*others, load_public_key(key_file))
    assert authenticate(issue(key_file, CLAIMS), trusted=trusted, ledger="ledger-1", now_us=NOW_US) == "token:deployer"
    for keys in (tuple(others), ()):
        with pytest.raises(NotAllowed, match="not signed by a key that this store trusts"):
            authenticate(issue(key_file, CLAIMS), trusted=keys, ledger="ledger-1", now_us=NOW_US)


def test_a_key_that_others_can_read_signs_nothing(tmp_path: Path) -> None:
    file = tmp_path / "open.key"
    make_key(file)
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="others can read"):
        issue(file, CLAIMS)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"aud": "ledger-2"}, "for another ledger"),
        ({"aud": ["ledger-1"]}, "for another ledger"),
        ({"aud": ["ledger-1", "ledger-2"]}, "for another ledger"),
        ({"aud": {"ledger-1": 1}}, "for another ledger"),
        ({"aud": "ledger-1 "}, "for another ledger"),
        ({"aud": ""}, "does not say 'aud'"),
        ({"exp": 1_500}, "the token of 'deployer' has expired; make a new one"),
        ({"exp": -1}, "has expired"),
        ({"exp": "9999999999"}, "Expected `int`, got `str` - at `\\$.exp`"),
        ({"exp": True}, "at `\\$.exp`"),
        ({"exp": float("inf")}, "at `\\$.exp`"),
        ({"exp": float("nan")}, "at `\\$.exp`"),
        ({"exp": [9_999]}, "at `\\$.exp`"),
        ({"exp": None}, "does not say 'exp'"),
        ({"iat": "1000"}, "at `\\$.iat`"),
        ({"iat": 1_561}, "the token of 'deployer' is not yet valid"),
        ({"nbf": 1_900}, "is not yet valid"),
        ({"nbf": "0"}, "at `\\$.nbf`"),
        ({"iss": "somebody"}, "was not issued by 'interlock'"),
        ({"iss": 5}, "was not issued by 'interlock'"),
        ({"sub": ""}, "at `\\$.sub`"),
        ({"sub": 7}, "not a token"),
        ({"sub": None}, "does not say 'sub'"),
    ],
)
def test_what_a_signed_token_must_say(
    changes: dict[str, Any], sentence: str, key_file: Path, private: Ed25519PrivateKey
) -> None:
    head, body = pack({"alg": "EdDSA", "typ": "JWT"}), pack({**PAYLOAD, **changes})
    signed = f"{head}.{body}.{pack(private.sign(f'{head}.{body}'.encode()))}"
    with pytest.raises(NotAllowed, match=sentence):
        check(signed, key_file)


@pytest.mark.parametrize("claim", PAYLOAD)
def test_every_claim_is_needed(claim: str, key_file: Path, private: Ed25519PrivateKey) -> None:
    token = jwt.encode({name: value for name, value in PAYLOAD.items() if name != claim}, private, "EdDSA")
    with pytest.raises(NotAllowed, match=f"the token does not say '{claim}'; make a new one"):
        check(token, key_file)


def test_a_clock_that_is_a_little_ahead_is_forgiven_at_the_start_and_not_at_the_end(key_file: Path) -> None:
    token = issue(key_file, CLAIMS)
    assert check(token, key_file, now_us=(1_000 - 60) * 1_000_000) == "token:deployer"
    with pytest.raises(NotAllowed, match="not yet valid"):
        check(token, key_file, now_us=(1_000 - 60) * 1_000_000 - 1)
    with pytest.raises(NotAllowed, match="has expired"):
        check(token, key_file, now_us=2_000_000_000)


def attacks(key_file: Path) -> dict[str, str]:
    """Tokens that say what a good one says, without the signature of the key."""
    private = load_pem_private_key(key_file.read_bytes(), password=None)
    public = private.public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    raw = public.public_bytes(Encoding.Raw, PublicFormat.Raw)
    body = pack(PAYLOAD)
    head, _, signature = issue(key_file, CLAIMS).split(".")
    other = Ed25519PrivateKey.generate()
    found = {
        "another key": jwt.encode(PAYLOAD, other, "EdDSA"),
        "another key that the header names": jwt.encode(
            PAYLOAD, other, "EdDSA", headers={"jwk": {"kty": "OKP"}, "kid": str(key_file), "jku": "http://127.0.0.1/"}
        ),
        "swapped payload": f"{head}.{pack({**PAYLOAD, 'sub': 'boss'})}.{signature}",
        "no signature": f"{head}.{body}.",
        "short signature": f"{head}.{body}.{signature[:20]}",
        "header without algorithm": f"{pack({'typ': 'JWT'})}.{body}.{signature}",
        "critical extension": f"{pack({'alg': 'EdDSA', 'crit': ['x'], 'x': 1})}.{body}.{signature}",
        "payload left out": f"{pack({'alg': 'EdDSA', 'crit': ['b64'], 'b64': False})}..{signature}",
    }
    for name in ("none", "None", "NONE", "nOnE", "", None, ["EdDSA"], "eddsa", "Ed25519", "ES256", "RS256"):
        for end in ("", signature):
            found[f"algorithm {name!r} {end[:1]}"] = f"{pack({'alg': name, 'typ': 'JWT'})}.{body}.{end}"
    for name, secret in (("pem", pem), ("stripped pem", pem.strip()), ("raw", raw), ("hex", raw.hex().encode())):
        start = f"{pack({'alg': 'HS256', 'typ': 'JWT'})}.{body}"
        found[f"HS256 with the public key ({name})"] = (
            f"{start}.{pack(hmac.new(secret, start.encode(), hashlib.sha256).digest())}"
        )
    return found


def test_attacks_on_the_signature(key_file: Path) -> None:
    for name, token in attacks(key_file).items():
        with pytest.raises(NotAllowed) as refused:
            check(token, key_file)
        assert any(
            sentence in str(refused.value)
            for sentence in ("not signed by a key", "must be signed with Ed25519", "not a token of Interlock")
        ), name


def test_the_public_key_is_no_secret(key_file: Path) -> None:
    hs256 = {name: token for name, token in attacks(key_file).items() if "HS256" in name}
    assert len(hs256) == 4
    for token in hs256.values():
        with pytest.raises(NotAllowed, match="must be signed with Ed25519"):
            check(token, key_file)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "rubbish",
        "a.b",
        "..",
        "!!.!!.!!",
        "il1.e30.e30",
        "\ud800.\ud800.\ud800",
        "é.é.é",
        "a" * 10_000_000,
        "." * 10_000_000,
        f"{pack(b'[' * 2_000)}.e30.e30",
        f"{pack({'alg': 'EdDSA'})}.{pack(b'9' * 2_500)}.e30",
        f"{pack([])}.e30.e30",
    ],
    ids=range(13),
)
def test_what_is_no_token_is_said_to_be_none_and_at_once(token: str, key_file: Path) -> None:
    started = time.process_time()
    with pytest.raises(NotAllowed, match=r"not a token of Interlock|not signed by a key|must be signed with"):
        check(token, key_file)
    assert time.process_time() - started < 1


@given(name=st.text(min_size=1, max_size=60), ledger=st.text(min_size=1, max_size=60), lasts=st.integers(1, 10**9))
def test_whoever_is_named_comes_back(name: str, ledger: str, lasts: int, key_file: Path) -> None:
    token = issue(key_file, TokenClaims(sub=name, aud=ledger, iat=1_000, exp=1_000 + lasts))
    assert check(token, key_file, ledger=ledger, now_us=1_000_000_000) == f"token:{name}"
    for now_us, of in (((1_000 + lasts) * 1_000_000, ledger), (1_000_000_000, ledger + "x")):
        with pytest.raises(NotAllowed):
            check(token, key_file, ledger=of, now_us=now_us)


@given(st.data())
def test_a_token_with_any_character_changed_is_refused(key_file: Path, data: st.DataObject) -> None:
    token = issue(key_file, CLAIMS)
    at = data.draw(st.integers(0, len(token) - 1))
    put = data.draw(st.characters().filter(lambda c: c != token[at]))
    changed = data.draw(st.sampled_from([token[:at] + put + token[at + 1 :], token[:at] + token[at + 1 :]]))
    with pytest.raises(NotAllowed):
        check(changed, key_file)


@given(
    st.text(max_size=200)
    | st.lists(st.binary(max_size=60), min_size=3, max_size=3).map(lambda p: ".".join(map(pack, p)))
)
@example("eyJhbGciOiJFZERTQSJ9.e30.")
def test_no_text_is_more_than_refused(key_file: Path, text: str) -> None:
    with pytest.raises(NotAllowed):
        check(text, key_file)


def test_the_library_is_loaded_only_when_a_token_is_made_or_checked() -> None:
    code = "import sys, interlock.review.identity; sys.exit('jwt' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_private_key_of_another_kind_signs_nothing(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

    file = tmp_path / "ec.key"
    file.touch(mode=0o600)
    file.write_bytes(generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(ConfigError, match="must be an Ed25519 key"):
        issue(file, CLAIMS)
