"""The webhook's HTTPS server: aiohttp's low-level server, with limits for every client.

`serve` listens, with certificates of `tls` from `pairs`; `records` reads the TLS records. A
`protocol` is one client's connection and its `activity`, one of the `connections` that have
`shares` of the server. `admission` answers a request in steps: `requests` reads it, `exchange`
counts it, `needs` looks up by `cluster_data` (`stored_objects` are decoded later), `turns` gives it
time, `decisions` logs it, `answers` writes it; `convert` answers for CRDs. `engine_in_force` is
made of `policy_files` and `cluster_policies`. `metrics` counts, `callers` says who may call,
`recording` keeps a sample of reviews.
"""
