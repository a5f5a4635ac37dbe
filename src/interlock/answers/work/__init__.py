"""How far a way of working has come, by what the records say: plans, distinct sources, what is missing."""
