"""Argo: a local research assistant, as an application of Interlock."""
