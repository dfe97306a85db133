"""The policy server: decides about requests to the API server.

`server` is HTTPS and nothing else; `review` translates AdmissionReviews, `messages` words the
answers. `registries` reads what policies ask of images. `engine` judges requests by policies: the
built-in `policies`, and `policy_sets` that people write, whose expressions `cel` compiles.
`harness` judges files instead of requests: manifests and test cases; `known` stands for the cluster
there, and `findings` lists what a verdict says.
"""
