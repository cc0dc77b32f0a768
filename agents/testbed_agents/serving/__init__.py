"""What the agents of the serving plane have in common: prompts as spans, KV by blocks."""
