"""Conventions of the source code.

test_names: a class or an alias is defined once. test_rooms: a package's docstring names its modules, which are not
too long.
test_documented_names: names in pages for developers exist.
"""
