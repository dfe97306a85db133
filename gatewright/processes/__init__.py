"""The processes, assembled from their parts, and what every process has.

`webhook_process` and `controller_process` assemble; `policies_in_force` builds what they judge by.
`policy_tasks` is what the leader does when that changes, `registration` what it does for the
webhook, and `unregistration` undoes the latter. `current_user` asks who the process is. `process`
runs the parts. `listeners` has the pages for metrics and probes, which `page_server` serves on the
`second_loop`. `registries` opens the look-ups of images. `logs` and `memory` set up logging and the
garbage collector.
"""
