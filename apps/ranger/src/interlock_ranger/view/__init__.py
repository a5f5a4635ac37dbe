"""What people look at: maps, tables, charts."""
