#!/bin/bash
# Dumps all databases into a directory of their own in /backup, reads the dumps back, and only then removes those older
# than $RETENTION. A dump that fails leaves nothing behind, and all older ones where they are.
set -euo pipefail
umask 077
export LC_ALL=C TZ=UTC

readonly format=%Y%m%dT%H%M%SZ
name=$(date "+$format")
readonly name
readonly partial="/backup/.partial-$name"

cutoff() {
  local unit
  case "$RETENTION" in
    *h) unit=hours ;;
    *d) unit=days ;;
    *w) unit=weeks ;;
  esac
  date --date="-${RETENTION%?} $unit" "+$format"
}

rm -rf /backup/.partial-*
trap 'rm -rf "$partial"' EXIT
mkdir "$partial"

pg_dumpall --globals-only --database=postgres --file="$partial/globals.sql"
grep --quiet "database cluster dump complete" "$partial/globals.sql"
psql --no-psqlrc --no-align --tuples-only --record-separator-zero --field-separator-zero --dbname=postgres \
  --output="$partial/.databases" --command="
    SELECT CASE WHEN datname ~ '^[A-Za-z0-9_-]+$' THEN datname ELSE 'database-' || oid END, datname
    FROM pg_database WHERE datallowconn AND datname <> 'template1'"
while read -r -d '' file && read -r -d '' database; do
  PGDATABASE=$database pg_dump --format=custom --file="$partial/$file.dump"
  pg_restore --file=/dev/null "$partial/$file.dump"
  echo "dumped $file, $(stat --format=%s "$partial/$file.dump") bytes"
done <"$partial/.databases"
rm "$partial/.databases"

sync "$partial"/* "$partial"
mv "$partial" "/backup/$name"
sync /backup
echo "backup $name is complete"

oldest=$(cutoff)
for old in /backup/[0-9]*T[0-9]*Z; do
  if [[ ${old##*/} < $oldest ]]; then
    rm -rf "$old"
    echo "removed ${old##*/}, older than $RETENTION"
  fi
done
