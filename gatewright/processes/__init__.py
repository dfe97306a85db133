"""The processes, assembled from their parts, and what every process has.

`webhook_process` and `controller_process` assemble; `registration` is what the leader does for the
webhook, `unregistration` undoes it. `process` runs the parts, `listeners` serves health and
metrics, `logs` and `memory` set up logging and the garbage collector.
"""
