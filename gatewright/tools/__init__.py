"""What stands beside the webhook, the controller and `gatewright check`: a package for each tool.

`doctor`, `migrate`, `export`, `editor` (`gatewright lsp`), `playground` and `scaffolds` have their
command in their module `command`, which `gatewright.cli` finds by an entry point of the group
`gatewright.commands`. No other package imports them, and Gatewright's image does not have them.
`cel_text` writes CEL for `migrate` and `export`.
"""
