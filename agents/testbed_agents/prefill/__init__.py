"""The prefill instance: computes the KV cache and sends it."""
