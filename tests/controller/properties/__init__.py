"""The guarantees of the controller runtime, each with the tests that verify it (file::test).

Paths are relative to tests/. Tests on the fake API server are as good as tests on a real one within the scope of
kube/test_conformance*.py, which runs each assertion on both.

1 Idempotency: after convergence, neither a full resync nor a restart writes anything
    controller/properties/test_every_kind.py::test_once_all_are_ready_nothing_is_written
    controller/properties/test_writes.py::test_objects_cost_their_writes_once_and_then_nothing
    controller/runtime/test_apply.py::test_a_field_that_a_new_release_does_not_set_is_removed
    controller/properties/test_children_on_a_cluster.py::test_stored_children_equal_the_desired_ones
    controller/properties/test_children_on_a_cluster.py::test_a_field_that_the_parent_no_longer_sets_is_removed
    controller/properties/test_writes.py::test_conditions_of_other_writers_cause_no_request
    controller/properties/test_writes.py::test_conditions_that_a_new_release_no_longer_writes_are_removed
2 Exact writes: each child and each status once
    controller/properties/test_writes.py::test_objects_cost_their_writes_once_and_then_nothing
    controller/test_webapp_on_a_cluster.py::test_a_changed_spec_costs_one_write_of_each_kind
3 No hot loop: failures, flipping statuses, defaults, rewritten fields
    controller/properties/test_writes.py::test_a_failing_reconcile_is_retried_with_growing_delays
    controller/properties/test_writes.py::test_a_status_that_is_never_the_same_is_no_loop
    controller/runtime/test_planner_errors.py::test_a_planner_error_is_reported_until_it_is_fixed
    controller/properties/test_writes.py::test_defaults_of_the_server_cause_no_loop
    controller/runtime/test_conflict_backoff.py::test_a_field_that_is_rewritten_again_and_again
    controller/runtime/test_conflict_backoff.py::test_a_field_that_a_webhook_overrides_is_not_applied_again
4 One reconcile of a key at a time, and one after its last change
    controller/properties/test_keys.py::test_keys_are_reconciled_one_at_a_time_and_after_their_last_change
    controller/runtime/test_workqueue.py::TestQueueMachine
5 No lost update
    controller/properties/test_edits.py::test_no_writer_loses_its_fields
    controller/properties/test_on_a_cluster.py::test_no_writer_loses_its_fields
    controller/properties/test_hand_edits.py::test_hand_edits_end_as_a_fresh_apply
6 Stale caches: no duplicate objects, no wrong status
    controller/properties/test_stale_caches.py::test_caches_that_lag_make_nothing_twice
    controller/properties/test_stale_caches.py::test_an_unobserved_change_of_the_spec_is_not_mistaken_for_a_status_write
    controller/runtime/test_controller.py::test_a_reconcile_waits_for_the_cache_to_see_what_was_written
7 Fail-over: leader killed, frozen or disconnected, Lease deleted, wrong clocks
    controller/properties/test_fail_over.py::test_never_do_two_write
    controller/runtime/test_leader.py::test_a_standby_is_there_when_the_lease_ends
    controller/runtime/test_leader.py::test_a_wrong_wall_clock_makes_no_candidate_lead
    controller/runtime/test_leader.py::test_a_deleted_lease_is_respected_until_it_would_have_expired
    kube/test_transport.py::test_the_gate_decides_when_the_body_is_sent
8 Finalizers never stick
    controller/properties/test_finalizers.py::test_an_object_can_be_deleted_while_it_is_created
    controller/properties/test_finalizers.py::test_an_object_is_deleted_after_an_outage_of_the_api_server
    controller/properties/test_finalizers.py::test_deleted_while_no_controller_runs
    controller/properties/test_finalizers.py::test_a_clean_up_that_fails_is_seen_and_tried_again
    controller/properties/test_finalizers.py::test_a_finalizer_that_cannot_be_written_is_seen
    controller/properties/test_removal_on_a_cluster.py::test_a_database_that_is_deleted_at_once_leaves_no_claim
    controller/properties/test_on_a_cluster.py::test_an_api_that_is_removed_takes_its_objects_along
9 Expired resource versions: no deletion is missed, and relisted objects have low priority
    kube/test_watch.py::test_an_expired_version_causes_a_new_list
    kube/test_watch.py::test_a_list_that_changes_too_fast_is_read_at_once
    kube/test_watch.py::test_a_watch_that_ends_without_an_event_causes_a_new_list
    kube/test_watch.py::test_a_killed_api_server_is_found_again
    controller/properties/test_outages.py::test_a_relist_has_a_lower_priority_than_changes
10 An API server that restarts is retried with back-off, and work resumes
    controller/properties/test_outages.py::test_an_absent_server_gets_few_requests_and_is_found_soon
    controller/properties/test_outages.py::test_nothing_is_lost_while_the_server_is_away
    controller/properties/test_api_server_faults.py::test_all_children_are_created_despite_faults_of_the_api_server
11 Half-open connections are noticed within 90 seconds
    kube/test_dead_connections.py::test_a_change_is_known_in_time_however_many_connections_die
    kube/test_watch.py::test_an_idle_kind_is_no_warning_and_a_dead_connection_is
    controller/properties/test_outages.py::test_connections_that_break_or_fall_silent
    controller/properties/test_api_server_faults.py::test_all_children_are_created_despite_faults_of_the_api_server
12 Overload: Retry-After and status 429 are respected
    controller/properties/test_outages.py::test_a_server_that_asks_for_patience_gets_it
    controller/properties/test_outages.py::test_an_overloaded_server_meets_no_storm
    kube/test_watch.py::test_retry_after_delays_the_next_watch
13 Shutdown during reconciles
    controller/properties/test_fail_over.py::test_never_do_two_write
    controller/runtime/test_leader.py::test_a_lease_is_released_even_during_a_renewal
    controller/runtime/test_controller.py::test_a_stopped_process_waits_for_its_workers
    controller/runtime/test_controller.py::test_a_hanging_reconcile_is_cancelled_at_the_end
14 Memory: proportional to the stored objects, and freed when they are deleted
    controller/properties/test_memory.py::test_a_store_costs_little_more_than_the_json_in_it
    controller/properties/test_memory.py::test_deleted_objects_leave_nothing_in_memory
15 The event loop is never blocked for long
    controller/properties/test_memory.py::test_a_large_list_does_not_block_the_event_loop
    gatewright/processes/test_page_server.py::test_a_page_may_finish_in_a_thread
16 A permission that is revoked affects one resource
    controller/properties/test_outages.py::test_a_right_that_is_lost_concerns_one_resource
    controller/runtime/test_health.py::test_a_resource_that_cannot_be_read_is_named_with_the_reason
17 Objects that the controller does not own
    e2e/test_webapps.py::test_a_foreign_deployment_is_never_changed
    controller/test_webapp_on_a_cluster.py::test_an_object_that_the_caches_do_not_know_is_never_touched
    controller/test_webapp_on_a_cluster.py::test_a_recreated_owner_gets_new_children
    controller/runtime/test_reconciler.py::test_the_child_of_an_earlier_object_of_the_name_is_waited_for
"""
