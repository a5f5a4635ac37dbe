"""What a run did, for people and for scripts: built from the ledger, shown as text, as HTML, or as JSON."""
