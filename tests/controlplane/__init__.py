"""A real Kubernetes control plane for tests, from binaries or built from Go modules: see `plane.ControlPlane`.

    @pytest.mark.controlplane("kube-controller-manager")   # the parts it needs beside etcd, API
    server, kubectl def test_what_is_owned_goes(control_plane, namespace): # shared by all tests,
    with a namespace of its own
        control_plane.kubectl("apply", "-n", namespace, "-f-", input=manifest)

A test that hurts a part, or registers what would hurt other tests, starts its own:
`own_control_plane()`. In a coroutine call through `asyncio.to_thread`: a webhook in the same event
loop cannot answer while kubectl waits.
"""
