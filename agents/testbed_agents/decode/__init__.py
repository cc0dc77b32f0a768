"""The main decode instance: receives the KV cache and answers."""
