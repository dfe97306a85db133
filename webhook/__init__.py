"""The policy server: decides about requests to the API server.

`server` is the HTTPS server; `review` decodes and encodes AdmissionReviews, `messages` has the
texts of answers. `registries` looks up digests and signatures of images. `engine` judges requests
by policies: the built-in `policies`, and those of `policy_sets`, whose expressions `cel` compiles.
`harness` judges files instead of requests: manifests and test cases; `known` has the state of a
cluster for it, and `findings` lists the results of a verdict.
"""
