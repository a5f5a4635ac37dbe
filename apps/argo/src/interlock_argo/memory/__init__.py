"""What Argo remembers: its memory, and the notes in it."""
