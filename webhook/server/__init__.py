"""The webhook's HTTPS server: aiohttp's low-level server, with limits for every client.

`serve` listens with TLS: `tls` loads the certificates from `certificate_pairs`, and `tls_records`
limits short TLS records. `protocol` is one client's connection with its `activity`; `connections`
limits their number by the `shares` of each address.

`admission` answers a request in steps: `requests` checks path and size, `exchange` tracks deadline
and metrics, `needs` runs look-ups by `cluster_data` (`stored_objects` are decoded later), `turns`
schedules it, `decisions` logs it, and `answers` encodes it. `convert` answers conversion reviews.

`engine_in_force` builds the engine from `policy_files` and `cluster_policies`, which keeps its
objects `ordered`. `metrics` has the metrics, `callers` checks client certificates, and `recording`
writes a sample of reviews.
"""
