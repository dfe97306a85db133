"""A real Kubernetes control plane for tests, from binaries or built from Go modules; see `plane.ControlPlane`.

    # The mark names components in addition to etcd, the API server and kubectl. All tests share the control
    # plane; each has a namespace of its own.
    @pytest.mark.controlplane("kube-controller-manager")
    def test_owned_objects_are_collected(control_plane, namespace):
        control_plane.kubectl("apply", "-n", namespace, "-f-", input=manifest)

A test that creates something that affects other tests, such as a webhook, uses `empty_plane`; one that stops
a component, or needs others than etcd and the API server, starts a control plane of its own with
`own_control_plane()`. A coroutine calls these functions through `asyncio.to_thread`: a webhook in the same event loop
cannot answer while kubectl blocks it.
"""
