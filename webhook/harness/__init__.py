"""Judges files with the webhook's code: manifests, and test cases with expected answers.

`objects` recognizes objects in documents, `manifests` judges them, and `reviews` sends requests to
the engine as the API server would.

`case_file` is the format of test cases. `cases` parses them to trials; `case_request` builds each
request from the smallest objects in `bases`, and `derived` adds variants. `trial` runs a trial in
the engine of its `subject`, and `crashes` tells where a policy raised. `update` rewrites
expectations. `proof` runs the cases that policies carry, before the policies go in force;
`violating` finds a request that a policy denies.

Cases that test nothing are found by `looked_up`, `rule_fields`, `unused` and `coverage`, and by
mutation testing: `mutants`, with `mutated_code` and `mutated_rules`.
"""
