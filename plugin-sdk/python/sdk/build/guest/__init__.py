"""Code that runs in the component before the plugin's own: modules, files and stand-ins.

The build copies this folder next to the plugin as the package `toolbay_guest`.
"""
