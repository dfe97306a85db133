"""The processes, assembled from their parts, and the parts that all of them share.

`webhook_process` and `controller_process` assemble the two processes; `policies_in_force` builds
the policies that both judge by, with the `planners` of all kinds, and `proofs` runs their cases.
`policy_tasks` has the leader's
tasks for changes of policies, `registration` those for the webhook, and `unregistration` undoes the
registration. `denied_requests` finds the requests by which the leader measures enforcement.
`current_user` reads the user that the process is authenticated as. `process` runs the parts.
`listeners` has the pages for metrics and probes, which `page_server` serves on the `second_loop`.
`registries` opens the look-ups of images. `logs` and `memory` set up logging and the garbage
collector.
"""
