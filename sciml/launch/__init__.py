"""How a process is started, and how it is stopped."""
