#!/bin/sh
# Install what tests/databases asks for, where that takes no password: as root, on a machine with apt-get.
set -eu
PATH=$PATH:/usr/sbin
packages=""
command -v mariadbd >/dev/null || packages="$packages mariadb-server"
command -v amqp-publish >/dev/null || packages="$packages amqp-tools"
ls /usr/lib/rabbitmq/bin/rabbitmq-server >/dev/null 2>&1 || packages="$packages rabbitmq-server"
command -v rclone >/dev/null || packages="$packages rclone"
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || packages="$packages postgresql"
[ -n "$packages" ] || exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "Tests with real databases are skipped: these packages are missing:$packages"
    exit 0
fi
echo "Installing$packages"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -qq -y --no-install-recommends $packages >/dev/null
