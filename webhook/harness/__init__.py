"""Judges files with the code of the webhook: manifests, and test cases with expected answers.

`objects` recognizes objects in documents, `manifests` judges them, and `reviews` asks the engine as
the API server would. `case_file` is the format of cases, `cases` parses them to trials, by
`case_request` with the smallest objects of `bases`; `derived` adds variants. `trial` runs one, in
an engine of `subject`. Cases that test nothing are found by `looked_up`, `rule_reads`, `unused` and
`coverage`, and by mutation: `mutants`, of `mutated_code` and `mutated_rules`. `update` rewrites
expectations.
"""
