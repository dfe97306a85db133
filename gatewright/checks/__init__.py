"""Judge manifests, or the objects of a cluster, by policy sets: what `check` and `impact` do.

`sources` reads the files that a command line names, `rendering` charts and kustomizations, whose
lines are those of `template_places`, `chart_values` and `origins`; `git` names changed files, and
`recorded_reviews` reads requests. `subjects` yields what is judged, from files or from a
`live_cluster`. `policy_files` reads the policies. `pipeline` leads from documents to verdicts, for
the editor, the playground and `plan` too. `checker` judges, `check_report` builds the report,
`fixes` corrects files, and `impact` compares two verdicts. `written_exceptions` excepts what is
denied, `exception_report` reports which exceptions are unused or too wide.
"""
