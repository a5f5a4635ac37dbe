"""Catalog: an autopilot that keeps an exercise catalog clean, and can say and take back everything it did."""
