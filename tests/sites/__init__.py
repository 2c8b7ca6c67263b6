"""Sites unlike the one of tests/settings.py. Each has settings here and tests beside them."""
