"""Clients with their habits that no specification knows."""
