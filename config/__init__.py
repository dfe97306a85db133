"""Reads what users write: settings, YAML and API types; and generates files from the API types.

`settings` is the model of all settings, and `faults` describes validation errors. `presets` finds
the policy sets that come with Gatewright. `documents` reads YAML as kubectl does, from files that
`directories` finds: `document_parts` splits a file, `yaml_parsers` parses a document, and
`yaml_reader` and `yaml_scalars` make its values; `positions` finds the line of a field, and `edits`
changes a field in the text. `modules` imports a team's own Python files. `api` has the types of all
custom resources, `converters` converts between their versions, and `defaulting` applies the
defaults of their schemas. `schemas` has the fields of Kubernetes' own kinds and of custom ones;
`object_faults` finds what an object has wrong, and `built_in_defaults` has the values that the API
server fills in. `crds` generates CustomResourceDefinitions. `field_paths` reads paths of fields.
The other modules each handle the format of one field: `config_maps`, `cron`, `data_versions`,
`image_references`, `postgresql_names`, `postgresql_parameters`, `printable`, `quantities`,
`regexes`, `service_order` and `templates`.
"""
