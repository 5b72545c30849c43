"""Builds a plugin: checks it on the author's machine, and makes the component.

    python -B -m toolbay.build

This package does not use the rest of the SDK, so projects of plain WIT functions
have it too.
"""
