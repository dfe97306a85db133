"""Judge manifests, or the objects of a cluster, by policy sets, for `check` and `impact`.

`project_file` has a repository's options. `sources` reads the files that a command line names:
`inventory` takes stock of them, by what `charts` and `kustomizations` read, without what leaves
the `checked_tree` or is ignored there; `skipped` has what is not judged, and `changed_files` what
Git or a hook names. `rendering` renders charts and kustomizations by `programs`, with the limits of
`confinement`, but no chart whose `chart_schemas` refer to elsewhere.
`template_places`, `chart_values` and `origin_files` find the lines that rendered fields come from,
and `recorded_reviews` reads requests. `subjects` yields the objects to judge, from files or from a
`live_cluster`. `loaded_policies` turns documents into verdicts, also for the editor, the playground
and `plan`. `checker` judges, `pod_paths` finds paths of
`--pod-kinds` that no object has, `api_rules` adds what the API server would reject, `check_report`
builds the report, `fixes` corrects files as `fixed_text` edits them, and `impact` compares two
verdicts, also with those of an `other_version` of Gatewright. `written_exceptions` writes
exceptions for denied objects, and `exception_report` reports exceptions that are unused or too
wide.
"""
