"""The demo, as the stacks of real agents load and call it."""
