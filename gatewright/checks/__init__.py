"""Judge manifests, or the objects of a cluster, by policy sets, for `check` and `impact`.

What is read: `project_file` has a repository's options. `sources` reads the files that a command
line names: `inventory` takes stock of them, by what `charts` and `kustomizations` read, without
what leaves the `checked_tree`, is ignored there or has not changed. `rendering` renders charts and
kustomizations by `programs`; `template_places` finds the lines that rendered fields come from.

What is judged: `subjects` yields the objects of sources, recorded reviews or a `live_cluster`.
`loaded_policies` turns documents into verdicts, also for the editor, the playground and `plan`.
`checker` is one run over all subjects.

What is reported: `check_report` has each violation with its place, and what the API server would
reject. `fixes` corrects files as `fixed_text` edits them, `exceptions` are written for denied
objects, or reported if unused or too wide, and `impact` compares two verdicts.
"""
