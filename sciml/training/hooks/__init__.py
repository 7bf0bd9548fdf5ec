"""What happens around the training steps: logging, checkpoints, evaluation, guards."""
