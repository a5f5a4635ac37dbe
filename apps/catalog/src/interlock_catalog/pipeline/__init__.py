"""From a family as it was read to the changes that are made: check, judge, propose, verify, plan, execute."""
