#!/bin/sh
# Install the browser that the tests of HTML ask for, where that takes no password: as root, on a machine with apt-get.
set -eu
packages=""
command -v chromium >/dev/null || packages="$packages chromium"
command -v chromedriver >/dev/null || packages="$packages chromium-driver"
[ -n "$packages" ] || exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "Tests of HTML in a browser are skipped: these packages are missing:$packages"
    exit 0
fi
echo "Installing$packages"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -qq -y --no-install-recommends $packages >/dev/null
