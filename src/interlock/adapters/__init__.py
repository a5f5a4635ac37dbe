"""Adapters: Interlock inside other people's agent frameworks. They translate, and decide nothing."""
