"""Runs: what one run does step by step, where it is remembered, and the durable engine that carries it."""
