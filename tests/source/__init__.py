"""The source as a text.

test_names: a class or an alias is defined once. test_rooms: packages say what is in them.
test_documented_names: what pages for developers name exists.
"""
