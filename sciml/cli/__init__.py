"""The `sciml` command. Importing it loads no jax; each stage imports what it needs when it runs."""

from sciml.cli.app import main

__all__ = ["main"]
