"""Sessions: several turns of one conversation, of which the earlier ones are remembered as typed values."""
