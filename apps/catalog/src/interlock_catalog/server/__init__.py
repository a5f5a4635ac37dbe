"""The catalog behind HTTP: functions by name, tokens with roles, ETags, idempotency keys, fencing."""
