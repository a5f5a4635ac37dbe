"""Recognisers: one for each kind of claim, each a `find(text)` over the tables of a vocabulary."""
