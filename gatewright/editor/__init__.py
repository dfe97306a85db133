"""What editors show of a text: violations, fixes, policy pages, and the fields of policy sets.

Pure: `text_parts` splits a text, `diagnostics` judges it, `cel_places` finds errors in expressions,
`schema_help` knows what may be written where. `language_server` is the edge, with pygls.
"""
