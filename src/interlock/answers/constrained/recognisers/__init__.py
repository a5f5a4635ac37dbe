"""Recognisers of arguments: which values of each kind a question speaks of."""
