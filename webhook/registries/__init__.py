"""Reads registries for policies: the digests of tags, and the signatures of digests.

`credentials` reads a docker config file, `client` speaks the OCI distribution API, `reader` finds
the signatures and attestations of an image, and `cache` keeps answers and reads each image only
once at a time. Namespaces share `room`; `in_flight` bounds the bytes of all reads.
"""
