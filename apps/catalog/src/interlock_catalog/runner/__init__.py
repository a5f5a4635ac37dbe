"""Runs: their steps, their records, the durable engine that carries them, and the workers."""
