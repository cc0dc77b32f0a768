"""Control between agents: small versioned messages over ZeroMQ. Never KV, never pickle."""
