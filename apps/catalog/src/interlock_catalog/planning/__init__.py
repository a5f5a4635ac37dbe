"""What should be done, on paper: operations, what they would make of a family, and values that fields could have."""
