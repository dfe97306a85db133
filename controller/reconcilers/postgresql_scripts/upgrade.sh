#!/bin/bash
# Makes $PGDATA-$TO: what $PGDATA, the data of PostgreSQL $FROM, is for $TO. $PGDATA is only read. The first argument is
# `upgrade`, while no server runs, or `check`: then it tries that with a copy of the schema, while the database runs.
set -euo pipefail
umask 077
export LC_ALL=C

readonly action=$1 old=/usr/lib/postgresql/$FROM/bin new=/usr/lib/postgresql/$TO/bin
# pg_upgrade accepts no address of another host
readonly host=$PGHOST port=$PGPORT
unset PGHOST
fail() {
  echo "$*" >&2
  exit 1
}

for version in "$FROM" "$TO"; do
  if [ ! -x "/usr/lib/postgresql/$version/bin/postgres" ]; then
    fail "the image has no PostgreSQL $version in /usr/lib/postgresql/$version: build one with both (UPGRADE_FROM=$FROM)"
  fi
done
directory=$(dirname "$PGDATA")
work=/work
if [ "$action" = upgrade ]; then
  work=$directory/upgrade
  exec 9>"$directory/.lock" # see start.sh
  flock 9
fi
rm -rf "${work:?}"/* "$PGDATA-$TO"
mkdir -p "$work"
cd "$work"

# What a copy of all takes, with some space for the catalogs of the new version; nothing where files can share blocks.
used=$( (du --summarize --block-size=1M "$PGDATA" || true) | cut -f 1)
touch "$directory/.shares"
if cp --reflink=always "$directory/.shares" "$directory/.shared" 2>/dev/null; then used=0; fi
rm -f "$directory/.shares" "$directory/.shared"
free=$(df --block-size=1M --output=avail "$directory" | tail -n 1)
if ((free < used + used / 10 + 256)); then
  fail "the volume has $((free)) MB free, and the upgrade needs $((used + used / 10 + 256)): increase spec.storage"
fi

serve() {
  "$1/pg_ctl" --pgdata="$2" --wait --silent --log="$work/log" \
    --options="-c listen_addresses= -c port=5432 -c unix_socket_directories=/tmp" start || fail "$(tail -n 5 "$work/log")"
}
stop() { "$1/pg_ctl" --pgdata="$2" --wait --silent --mode=fast stop; }
sql() { "$old/psql" --no-psqlrc --no-align --tuples-only --field-separator=' ' --dbname=postgres "$@"; }
create() { # programs, directory: an empty cluster like the one that was asked
  local checksums=()
  if [ "$sums" = on ]; then checksums=(--data-checksums); elif [ "${1//[!0-9]/}" -ge 18 ]; then checksums=(--no-data-checksums); fi
  "$1/initdb" --pgdata="$2" --username=postgres --auth=trust --encoding="$encoding" --lc-collate="$collate" \
    --lc-ctype="$ctype" "${checksums[@]}" >"$work/initdb" 2>&1 || fail "initdb: $(tail -n 3 "$work/initdb")"
}
ask() {
  read -r encoding collate ctype sums libraries < <(sql --command="
    SELECT pg_encoding_to_char(encoding), datcollate, datctype, current_setting('data_checksums'),
      current_setting('shared_preload_libraries') FROM pg_database WHERE datname = 'template0'" "$@")
}
pg_upgrade() {
  "$new/pg_upgrade" --old-bindir="$old" --new-bindir="$new" --old-datadir="$work/old" --new-datadir="$work/new" \
    --socketdir=/tmp --username=postgres --new-options="-c shared_preload_libraries='$libraries'" "$@" >"$work/output" 2>&1 ||
    {
      # The checks that failed, with the lists of what is wrong.
      grep --invert-match --extended-regexp ' ok *$|^-+$|^Performing ' "$work/output" >"$work/why" || true
      find "$work" -name '*.txt' -newer "$work/initdb" -path '*pg_upgrade*' -exec cat {} + >>"$work/why" || true
      cat "$work/output" >&2
      fail "pg_upgrade: $(tr --squeeze-repeats '[:space:]' ' ' <"$work/why" | tail --bytes=700)"
    }
}

if [ "$action" = check ]; then
  ask --host="$host" --port="$port"
  # A copy of the schema does not show them, and pg_upgrade would refuse them only once the database is stopped.
  closed=$(sql --host="$host" --port="$port" --command="
    SELECT string_agg(quote_ident(datname), ', ' ORDER BY datname) FROM pg_database
    WHERE datallowconn = (datname = 'template0') OR datconnlimit = -2")
  if [ -n "$closed" ]; then
    fail "pg_upgrade needs connections to each database but template0, and each must be valid; correct or drop: $closed"
  fi
  create "$old" "$work/old"
  create "$new" "$work/new"
  serve "$old" "$work/old"
  "$old/pg_dumpall" --schema-only --host="$host" --port="$port" >"$work/schema.sql"
  sql --host=/tmp --quiet --file="$work/schema.sql" >"$work/restored" 2>&1 || true
  stop "$old" "$work/old"
  if wrong=$(grep 'ERROR:' "$work/restored" | grep --max-count=3 --invert-match 'role "postgres" already exists'); then
    fail "the schema cannot be copied with the programs of this image: $wrong"
  fi
  pg_upgrade --check
  echo "PostgreSQL $FROM can be upgraded to $TO"
  exit 0
fi

state=$("$old/pg_controldata" "$PGDATA" | sed -n 's/^Database cluster state: *//p')
if [ "$state" != "shut down" ]; then fail "the data of the primary is \"$state\", not shut down"; fi
cp --archive --reflink=auto "$PGDATA" "$work/old"
serve "$old" "$work/old"
ask --host=/tmp
stop "$old" "$work/old"
create "$new" "$work/new"
pg_upgrade --link
# Statistics of the planner, which PostgreSQL before 18 does not take over, and extensions.
serve "$new" "$work/new"
"$new/vacuumdb" --host=/tmp --all --analyze-only --quiet
if [ -e update_extensions.sql ]; then sql --host=/tmp --file=update_extensions.sql; fi
stop "$new" "$work/new"
rm -rf "$work/old"
sync "$directory"
mv "$work/new" "$PGDATA-$TO"
rm -rf "$work"
sync "$directory"
echo "PostgreSQL $FROM is upgraded to $TO in $PGDATA-$TO"
