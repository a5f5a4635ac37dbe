"""Argo's tools: contracts over what it reads and remembers."""
