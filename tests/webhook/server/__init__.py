"""The server over HTTP: answers, limits, connections, certificates, policies and look-ups.

test_protocol fails when aiohttp changes what the server replaces; test_hostile_clients and
test_hostile_registries attack it.
"""
