"""The conformance suite of MCP against the gateway and against the client of Interlock."""
