"""How Argo answers without writing: what a question asks for, which statements of the memory say it, and how surely."""
