"""The roles: what a model is asked, in what shape it must answer, and what becomes of the answer."""
