"""Reads registries for policies: the digests of tags, and the signatures of digests.

`credentials` reads a docker config file, `client` speaks the OCI distribution API, `reader` finds
what is attached to an image, and `cache` keeps answers and asks for each only once at a time.
"""
