"""The built-in policies, one a module. Modules whose names begin with `_` are shared by them."""
