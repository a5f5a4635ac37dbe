"""The door for files: text, tables, shapes and rasters are read, checked, and refused in a sentence."""
