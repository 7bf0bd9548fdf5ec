"""Optimizers, one file each, registered by name."""
