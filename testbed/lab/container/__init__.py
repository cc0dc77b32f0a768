"""Programs of wire and router containers: each sets up its own namespace, as the plan says."""
