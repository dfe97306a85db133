#!/bin/bash
# Puts all databases back to what they were in one of the directories in /backup: the newest one, or the newest that had
# begun by the time $BACKUP, such as 20261121T020000Z.
set -euo pipefail

cd /backup
chosen=$(printf '%s\n' [0-9]*T[0-9]*Z | LC_ALL=C awk -v time="${BACKUP:-9}" '$0 "" <= time ""' | LC_ALL=C sort | tail -n 1)
if [ ! -d "${chosen:-none}" ]; then
  echo "there is no backup${BACKUP:+ that had begun by $BACKUP}" >&2
  exit 1
fi
cd "$chosen"
# That roles exist already is no fault. Those of ours keep the passwords that they have here.
grep --extended-regexp --invert-match '^(CREATE|ALTER) ROLE (postgres|replicator|exporter)[ ;]' globals.sql |
  psql --no-psqlrc --quiet --dbname=postgres --file=-
for dump in *.dump; do
  if [ "$dump" = postgres.dump ]; then
    pg_restore --clean --if-exists --exit-on-error --dbname=postgres "$dump"
  else
    pg_restore --clean --if-exists --create --exit-on-error --dbname=postgres "$dump"
  fi
  echo "restored ${dump%.dump}"
done
echo "backup $chosen is restored"
