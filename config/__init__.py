"""What people write: settings, YAML, the types of all kinds, and what is generated from them.

`settings` are those of the processes, written as `setting_types` says; `faults` are their errors;
`presets` are the policy sets that have names. `documents` reads YAML: its `values`, and by its
`nodes` the `lines` of fields; `edits` changes it. `modules` imports a team's own Python files.
`api` has the types of all custom resources, `converters` their other versions, `defaulting` the
defaults of their schemas; `schemas` knows the fields of Kubernetes' own kinds, and
`built_in_defaults` what the API server fills in. `crds` generates CustomResourceDefinitions.
Rules of single fields: `config_maps`, `cron`, `data_versions`, `postgresql_names`, `printable`,
`quantities`, `regexes` and `templates`.
"""
