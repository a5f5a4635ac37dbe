"""What a run did, for people and for scripts: gathered from the ledger, shown as text, as a page, or as JSON."""
