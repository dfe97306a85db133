#!/bin/sh
# Install what tests/node/programs.py asks for, where that takes no password: as root, on a machine with apt-get.
set -eu
PATH=$PATH:/usr/sbin:/sbin
packages=""
need() { command -v "$1" >/dev/null || packages="$packages $2"; }
need buildah buildah
need conntrack conntrack
need containerd containerd
need ip iproute2
need iptables iptables
need mmdebstrap mmdebstrap
need nft nftables
need nsenter util-linux
need runc runc
need sysctl procps
need unshare util-linux
[ -e /usr/lib/cni/ptp ] || packages="$packages containernetworking-plugins"
[ -n "$packages" ] || exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "A node cannot run here: these packages are missing:$packages"
    exit 0
fi
echo "Installing$packages"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -qq -y --no-install-recommends $packages >/dev/null
