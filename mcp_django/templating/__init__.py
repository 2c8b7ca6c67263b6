"""Django's template language for prompts, without anything that could reach beyond its values.

The parser is Django's. The lookup is ours: it never gets an attribute and never calls. What a
template can see are the plain values that it is given.
"""
