#!/usr/bin/env python3
"""Verify an exported ledger without Interlock: `interlock audit export --out ledger.jsonl`, then

    python verify_ledger.py ledger.jsonl [--anchors anchors.jsonl] [--public-key HEX]

Needs only the Python standard library, and `cryptography` for the signatures. Exit 0: intact; 1: not.

What is checked. A record's hash is SHA-256 over three parts joined by newlines: the hash of the record before it in the
same lane (for the first one SHA-256 of "interlock ledger LEDGER lane LANE"), the JSON array of its columns, and its
body, byte for byte. A checkpoint is an Ed25519 signature over a JSON text that names, for every lane, the id, count
and hash of its last record, and the SHA-256 of the checkpoint before it. Anchors are checkpoints kept elsewhere.
"""

import argparse
import hashlib
import json
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

COLUMNS = ("id", "lane", "at_us", "kind", "call", "turn", "actor", "tool", "status")


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def check_signature(title: str, item: dict, ledger: str, key: str | None, problems: list) -> dict | None:
    """What a checkpoint says, if its signature holds."""
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(item["public_key"]))
        public.verify(bytes.fromhex(item["signature"]), item["body"].encode())
    except (InvalidSignature, ValueError):
        problems.append(f"{title}: the signature does not fit its text")
        return None
    said = json.loads(item["body"])
    if key is not None and item["public_key"] != key:
        problems.append(f"{title}: signed by another key")
    if said["ledger"] != ledger or said["n"] != item["n"]:
        problems.append(f"{title}: belongs to another ledger, or stands in another's place")
    return said


def verify(path: str, anchors: list, key: str | None) -> tuple[list, int, int]:
    """Problems, number of records, number of records that no anchor covers."""
    problems: list = []
    heads: dict = {}
    places: dict = {}
    checkpoints: list = []
    with open(path, encoding="utf-8") as lines:
        header = json.loads(next(lines))
        ledger = header["ledger"]
        if header.get("format") != "interlock-ledger/1" or not header.get("complete"):
            return [f"{path}: not a complete export of a ledger"], 0, 0
        for line in lines:
            item = json.loads(line)
            if "checkpoint" in item:
                checkpoints.append(item["checkpoint"])
                continue
            lane = item["lane"]
            previous, last, count = heads.get(lane, (sha256(f"interlock ledger {ledger} lane {lane}"), 0, 0))
            columns = json.dumps([item[name] for name in COLUMNS], ensure_ascii=False, separators=(",", ":"))
            if sha256(f"{previous}\n{columns}\n{item['body']}") != item["hash"]:
                problems.append(f"record {item['id']}: it, or the one before it in lane {lane}, was changed or removed")
            if item["id"] <= last:
                problems.append(f"record {item['id']}: out of order in lane {lane}")
            heads[lane] = (item["hash"], item["id"], count + 1)
            places[item["id"]] = (lane, count + 1, item["hash"])
    said = [check_signature(f"checkpoint {item['n']}", item, ledger, key, problems) for item in checkpoints]
    before = None
    for item, statement in zip(checkpoints, said, strict=True):
        if statement is not None and statement["previous"] != before:
            problems.append(f"checkpoint {item['n']}: the one before it is missing or was replaced")
        before = sha256(item["body"])
    kept = {item["body"] for item in checkpoints}
    covered = 0
    for item in anchors:
        statement = check_signature(f"anchor {item['n']}", item, ledger, key, problems)
        if item["body"] not in kept:
            problems.append(f"anchor {item['n']}: the ledger no longer holds this checkpoint")
        if statement is not None:
            said.append(statement)
            covered = max(covered, sum(count for _lane, _number, count, _hash in statement["heads"]))
    for statement in filter(None, said):
        for lane, number, count, text in statement["heads"]:
            if places.get(number) != (lane, count, text):
                problems.append(f"checkpoint {statement['n']}: record {number} is gone or not the one that was signed")
    return problems, len(places), len(places) - covered


def main() -> int:
    parser = argparse.ArgumentParser(description="Verify an exported Interlock ledger.")
    parser.add_argument("export", help="JSONL written by `interlock audit export`")
    parser.add_argument("--anchors", help="JSONL written by `interlock audit anchor`")
    parser.add_argument("--public-key", help="hex of the key that must have signed")
    given = parser.parse_args()
    anchors = []
    if given.anchors:
        with open(given.anchors, encoding="utf-8") as lines:
            anchors = [json.loads(line) for line in lines if line.strip()]
    problems, records, unanchored = verify(given.export, anchors, given.public_key)
    for problem in problems:
        print(problem)
    print(f"{'not intact' if problems else 'intact'}: {records} records, {unanchored} not anchored")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
