#!/usr/bin/env python3
"""Verify an exported ledger without Interlock: `interlock audit export --out ledger.jsonl`, then

    python verify_ledger.py ledger.jsonl [--anchors anchors.jsonl] [--public-key HEX]

Needs only the Python standard library, and `cryptography` for the signatures. Exit 0: intact; 1: not.

What is checked. A record's hash is SHA-256 over three parts joined by newlines: the hash of the record before it in the
same lane (for the first one SHA-256 of "interlock ledger LEDGER lane LANE"), the JSON array of its columns, and its
body, byte for byte. A checkpoint is an Ed25519 signature over a JSON text that names, for every lane, the id, count
and hash of its last record, and the SHA-256 of the checkpoint before it; it may name the key that signs from then on
(next_key), or one that is lost (lost_key). Anchors are checkpoints kept elsewhere.
"""

import argparse
import hashlib
import json
import sys
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

COLUMNS = ("id", "lane", "at_us", "kind", "call", "turn", "actor", "tool", "status")


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Verifier:
    """An export, read once: the chain of each lane, then what was signed about it."""

    def __init__(self, ledger: str, key: str | None) -> None:
        self.ledger, self.keys = ledger, None if key is None else {key}
        self.problems: list[str] = []
        self.heads: dict[int, tuple[str, int, int]] = {}  # of each lane: hash, id and number of its last record
        self.places: dict[int, tuple[int, int, str]] = {}  # of each record: lane, number in it, hash

    def check_record(self, item: dict[str, Any]) -> None:
        lane = item["lane"]
        previous, last, count = self.heads.get(lane, (sha256(f"interlock ledger {self.ledger} lane {lane}"), 0, 0))
        columns = json.dumps([item[name] for name in COLUMNS], ensure_ascii=False, separators=(",", ":"))
        if sha256(f"{previous}\n{columns}\n{item['body']}") != item["hash"]:
            self.problems.append(
                f"record {item['id']}: it, or the one before it in lane {lane}, was changed or removed"
            )
        if item["id"] <= last:
            self.problems.append(f"record {item['id']}: out of order in lane {lane}")
        self.heads[lane] = (item["hash"], item["id"], count + 1)
        self.places[item["id"]] = (lane, count + 1, item["hash"])

    def read_statement(self, title: str, item: dict[str, Any]) -> dict[str, Any] | None:
        """What a checkpoint says, if its signature holds; held against the records."""
        try:
            public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(item["public_key"]))
            public.verify(bytes.fromhex(item["signature"]), item["body"].encode())
        except (InvalidSignature, ValueError):
            self.problems.append(f"{title}: the signature does not fit its text")
            return None
        said: dict[str, Any] = json.loads(item["body"])
        if self.keys is not None and item["public_key"] not in self.keys:
            self.problems.append(f"{title}: signed by another key")
        if said["ledger"] != self.ledger or said["n"] != item["n"]:
            self.problems.append(f"{title}: belongs to another ledger, or stands in another's place")
        for lane, number, count, text in said["heads"]:
            if self.places.get(number) != (lane, count, text):
                self.problems.append(f"{title}: record {number} is gone or not the one that was signed")
        return said

    def follow_keys(self, checkpoints: list[dict[str, Any]]) -> None:
        """A checkpoint may hand over to another key, or begin anew after one was lost; the given key leads to those."""
        for _ in checkpoints if self.keys is not None else ():
            for item in checkpoints:
                said, known = json.loads(item["body"]), self.keys or set()
                pair = {item["public_key"], said.get("next_key") or item["public_key"]}
                if pair & known:
                    known |= pair
                if item["public_key"] in known and said.get("lost_key"):
                    known.add(said["lost_key"])

    def check_signed(self, checkpoints: list[dict[str, Any]], anchors: list[dict[str, Any]]) -> int:
        """Check what the ledger keeps and what was kept elsewhere; the number of records that anchors cover."""
        before, covered = None, 0
        self.follow_keys([*checkpoints, *anchors])
        for item in checkpoints:
            said = self.read_statement(f"checkpoint {item['n']}", item)
            if said is not None and said["previous"] != before:
                self.problems.append(f"checkpoint {item['n']}: the one before it is missing or was replaced")
            before = sha256(item["body"])
        kept = {item["body"] for item in checkpoints}
        for item in anchors:
            said = self.read_statement(f"anchor {item['n']}", item)
            if item["body"] not in kept:
                self.problems.append(f"anchor {item['n']}: the ledger no longer holds this checkpoint")
            if said is not None and said["ledger"] == self.ledger:
                covered = max(covered, sum(count for _lane, _number, count, _hash in said["heads"]))
        return covered


def say(*lines: str, intact: bool) -> int:
    """Print lines of ours alone, without what steers a terminal, and the verdict; its exit code comes back."""
    for line in lines:
        sys.stdout.write("".join(c if c.isprintable() else ascii(c)[1:-1] for c in line) + "\n")
    return 0 if intact else 1


def main() -> int:
    parser = argparse.ArgumentParser(description="Verify an exported Interlock ledger.")
    parser.add_argument("export", help="JSONL written by `interlock audit export`")
    parser.add_argument("--anchors", help="JSONL written by `interlock audit anchor`")
    parser.add_argument("--public-key", help="hex of the key that must have signed")
    given = parser.parse_args()
    anchors: list[dict[str, Any]] = []
    if given.anchors:
        with open(given.anchors, encoding="utf-8") as lines:
            anchors = [json.loads(line) for line in lines if line.strip()]
    with open(given.export, encoding="utf-8") as lines:
        header, checkpoints = json.loads(next(lines, "{}")), []
        if header.get("format") != "interlock-ledger/1" or not header.get("complete"):
            return say(f"{given.export}: not a complete export of a ledger", "not intact", intact=False)
        verifier = Verifier(header["ledger"], given.public_key)
        for item in map(json.loads, lines):
            if "checkpoint" in item:
                checkpoints.append(item["checkpoint"])
            else:
                verifier.check_record(item)
    records = len(verifier.places)
    unanchored = max(0, records - verifier.check_signed(checkpoints, anchors))
    intact = not verifier.problems
    said = f"{records} record{'' if records == 1 else 's'}, {unanchored} not anchored"
    return say(*verifier.problems, f"{'intact' if intact else 'not intact'}: {said}", intact=intact)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError) as error:
        sys.exit(say(f"a line cannot be read ({type(error).__name__}: {error})", "not intact", intact=False))
