"""Training: objectives, optimizers, the loop and its hooks; each in its own module."""
