"""Help for editors: violations, fixes, policy pages, and the fields of policy sets.

Pure: `yaml_parts` splits a text, `diagnostics` judges it, `cel_places` finds errors in expressions,
`schema_help` completes fields and values. `definitions` reads the custom kinds of a workspace, and
`language_server` speaks with the editor, with pygls.
"""
