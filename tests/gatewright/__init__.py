"""The command line, the processes, the public API, and the pages of docs/ that show them.

Each command has a module; test_*_page and test_readme run the examples of a page. `outputs` tests
the formats, `doctor` that command. Commands that need a cluster are marked `controlplane`.
"""
