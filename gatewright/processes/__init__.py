"""The processes, assembled from their parts, and what every process has.

`webhook_process` and `controller_process` assemble; `registration` is what the leader does for the
webhook, `unregistration` undoes it. `policies_in_force` loads the policies and follows them,
`current_user` asks who the process is. `process` runs the parts, `listeners` serves health and
metrics by the `page_server`, `logs` and `memory` set up logging and the garbage collector.
"""
