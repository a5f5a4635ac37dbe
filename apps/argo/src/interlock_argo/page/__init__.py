"""Argo in the browser: a page that is served on this machine alone, to whoever has the link."""
