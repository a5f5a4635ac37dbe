"""Audit: reads records, checks their chain, signs where it ends. Nothing behaves differently without it."""

from interlock.audit.checkpoints import anchor, read_anchors, rotate
from interlock.audit.export import as_row, export_csv, export_jsonl
from interlock.audit.keys import (
    SigningKey,
    is_signed_by,
    load_key,
    load_or_make_key,
    load_public_key,
    make_key,
    public_file,
)
from interlock.audit.verify import Report, verify

__all__ = [
    "Report",
    "SigningKey",
    "anchor",
    "as_row",
    "export_csv",
    "export_jsonl",
    "is_signed_by",
    "load_key",
    "load_or_make_key",
    "load_public_key",
    "make_key",
    "public_file",
    "read_anchors",
    "rotate",
    "verify",
]
