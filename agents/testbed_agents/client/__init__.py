"""The load generator: sends requests, sees each answer position once and in order."""
