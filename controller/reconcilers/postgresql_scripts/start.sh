#!/bin/bash
# Starts an instance: Patroni decides whether it becomes the primary, and starts PostgreSQL.
set -euo pipefail
umask 077
export LC_ALL=C

# Without a trap, the first process of a container ignores SIGTERM, and Python sets its own late: a pod that is deleted
# while it starts would run on until it is killed.
child=
trap 'if [ "$child" ]; then kill -TERM "$child"; else exit 143; fi' TERM
run() {
  local code=0
  "$@" &
  child=$!
  while kill -0 "$child" 2>/dev/null; do
    wait "$child" && code=0 || code=$?
  done
  child=
  return "$code"
}

# An image may have the programs of several versions.
if [ "${VERSION-}" ] && [ -d "/usr/lib/postgresql/$VERSION/bin" ]; then
  export PATH=/usr/lib/postgresql/$VERSION/bin:$PATH
fi
version=$(postgres --version | awk '{print $3}')
version=${version%%[!0-9]*}
if [ "$version" != "${VERSION:-$version}" ]; then
  echo "the image has PostgreSQL $version, and spec.version is $VERSION: correct spec.image or spec.version" >&2
  exit 1
fi
if ! command -v patroni >/dev/null; then
  echo "the image has no Patroni: build it from images/postgresql, or correct spec.image" >&2
  exit 1
fi
# A pod that was deleted by force may still run for a moment, and PostgreSQL does not see a server in another container: two
# on one volume would destroy the data. The lock ends with this process, as the server does.
exec 9>"$(dirname "$PGDATA")/.lock"
if ! flock --nonblock 9; then
  echo "another pod still runs a server on this volume: waiting until it ends" >&2
  run flock 9
fi
# An upgrade, or the way back, has data of several versions beside each other.
if [ -n "$(compgen -G "$PGDATA-*")" ] || [ "$(cat "$PGDATA/PG_VERSION" 2>/dev/null || echo "$version")" != "$version" ]; then
  run python3 /etc/gatewright/store.py select-data "$version"
fi
# a kubelet that applies an fsGroup to a restored or cloned volume leaves 2770, with which no server starts
if [ -d "$PGDATA" ]; then chmod 0700 "$PGDATA"; fi
# A standby of a release without Patroni would make itself the primary beside the old one, or with older data.
if [ -e "$PGDATA/standby.signal" ] && [ ! -e "$PGDATA/patroni.dynamic.json" ]; then
  run python3 /etc/gatewright/store.py await-leader
fi
# The controller reports a full volume: PostgreSQL goes on without being able to write.
watch_volume() {
  local free full reported=unknown
  while :; do
    free=$(df -Pk "$(dirname "$PGDATA")" | awk 'NR == 2 {print $4}')
    if ((free < 64 * 1024)); then full=yes; else full=; fi
    if [ "$full" != "$reported" ]; then
      python3 /etc/gatewright/store.py report-volume "$full"
      reported=$full
    fi
    sleep 15
  done
}
watch_volume 9>&- &
host=$POD_IP
if [[ $host = *:* ]]; then host="[$host]"; fi
export PATRONI_RESTAPI_CONNECT_ADDRESS=$host:8008 PATRONI_POSTGRESQL_CONNECT_ADDRESS=$host:$PGPORT
run patroni /etc/gatewright/patroni.yml
