#!/bin/bash
# Makes the data directory of an instance ready to start. The first instance is the primary, the others follow it.
# It may be killed anywhere: what is half made has another name, and is made anew the next time.
set -euo pipefail
umask 077
export LC_ALL=C

readonly run=/var/run/postgresql
readonly scripts=/etc/gatewright
readonly new="$PGDATA.new"
# The name may lead to a pod that has ended: without a limit of TCP, a standby tries for two minutes to connect to it.
# The WAL receiver takes no connect_timeout.
readonly conninfo="host=$PRIMARY_HOST port=$PGPORT tcp_user_timeout=8000 user=replicator \
application_name=$POD_NAME passfile=$run/pgpass"

fail() {
  echo "$*" >&2
  exit 1
}

has_data() { [ -s "$PGDATA/PG_VERSION" ]; }

# A tenth of the volume at most is for the log that a standby may fetch late and that a crash replays.
configure() {
  local version total keep
  version=$(postgres --version | awk '{print $3}')
  version=${version%%[!0-9]*}
  if has_data && [ "$(<"$PGDATA/PG_VERSION")" != "$version" ]; then
    fail "the data is of PostgreSQL $(<"$PGDATA/PG_VERSION"), this is $version; give the resource its old version back"
  fi
  total=$(df --block-size=1M --output=size "${PGDATA%/*}" | tail -n 1)
  keep=$((total / 20))
  keep=$((keep < 64 ? 64 : keep > 1024 ? 1024 : keep))
  {
    echo "include = '$scripts/postgresql.conf'"
    echo "max_wal_size = '$((keep * 2))MB'"
    if [ "$version" -ge 13 ]; then echo "wal_keep_size = '${keep}MB'"; else echo "wal_keep_segments = $((keep / 16))"; fi
    echo "primary_conninfo = '$conninfo'"
  } >"$run/postgresql.conf"
  echo "*:*:*:replicator:$(sed 's/[:\\]/\\&/g' <<<"$REPLICATION_PASSWORD")" >"$run/pgpass"
}

primary() {
  if ! has_data; then
    local host
    for host in $STANDBY_HOSTS; do
      if pg_isready --quiet --host="$host" --timeout=3; then
        fail "the primary's volume is empty, but $host has data: see \"Loss of the primary\" in the documentation"
      fi
    done
    initdb --pgdata="$new" --username=postgres --encoding=UTF8 --locale=C.UTF-8 --data-checksums \
      --auth-local=trust --auth-host=reject
    mv --no-target-directory "$new" "$PGDATA"
  fi
  rm -f "$PGDATA/standby.signal"
  set_passwords
}

# On a socket of its own, so that nobody takes the instance for ready.
set_passwords() {
  rm -rf "$run/setup"
  mkdir "$run/setup"
  trap 'pg_ctl stop --silent --mode=immediate || true' EXIT
  pg_ctl start --silent --wait --timeout=86400 \
    --options="-c config_file=$run/postgresql.conf -c listen_addresses='' -c unix_socket_directories=$run/setup"
  psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --host="$run/setup" --username=postgres --dbname=postgres \
    --file="$scripts/setup.sql"
  pg_ctl stop --silent --wait --mode=fast
  trap - EXIT
}

standby() {
  if has_data; then
    local ours theirs
    ours=$(pg_controldata | sed -n 's/^Database system identifier: *//p')
    theirs=$(psql --no-psqlrc --no-align --tuples-only --command=IDENTIFY_SYSTEM \
      "$conninfo dbname=postgres replication=true connect_timeout=5" | cut --delimiter='|' --fields=1) || theirs=$ours
    if [ "$ours" != "$theirs" ]; then
      fail "this volume is of another database than the primary's: see \"Loss of the primary\" in the documentation"
    fi
  else
    until pg_isready --quiet --host="$PRIMARY_HOST" --timeout=3; do
      echo "waiting for the primary, $PRIMARY_HOST"
      sleep 2
    done
    pg_basebackup --pgdata="$new" --dbname="$conninfo" --wal-method=stream --checkpoint=fast
    touch "$new/standby.signal"
    mv --no-target-directory "$new" "$PGDATA"
  fi
  touch "$PGDATA/standby.signal"
}

rm -rf "$new"
# a kubelet that applies an fsGroup to a restored or cloned volume leaves 2770, with which no server starts
if [ -d "$PGDATA" ]; then chmod 0700 "$PGDATA"; fi
configure
if [ "${POD_NAME##*-}" = 0 ]; then primary; else standby; fi
