"""The source as a whole.

| module | covers |
|---|---|
| test_names | a name of a class or an alias is defined once |
"""
