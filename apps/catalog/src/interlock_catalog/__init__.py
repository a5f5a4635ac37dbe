"""Catalog: an autopilot that keeps an exercise catalog clean, and can explain and undo everything it did."""
