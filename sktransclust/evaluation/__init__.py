"""Checkpoints and tasks in, tables out."""
