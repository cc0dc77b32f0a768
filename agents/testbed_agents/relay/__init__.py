"""The relay decode instance (RLD): answers at once, until the main decode has caught up."""
