"""A real node on this machine: kubelet, containerd, kube-proxy and CoreDNS in namespaces of their own."""
