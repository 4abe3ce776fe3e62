"""Shortcuts: results that torch and ExecuTorch compute again in every export, computed once, with the same bytes.

A shortcut is installed in the template before it warms up, so that forked children find what is computed once; a fresh
interpreter installs them as well. Each is one module, listed in `plugin.NAMES`: what it replaces and why that is safe
is its docstring, and the guard of patches verifies the functions that it names. To delete one, delete its module, its
name there and its tests. Unlike a patch it must not change a byte of any artifact: runs that record goldens, and the
weekly CI, have none, and every other run compares with these goldens.
"""
