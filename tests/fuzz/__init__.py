"""Hostile input for whatever reads what others wrote: `make fuzz` tries it for FUZZ_SECONDS, `make test` for a moment."""
