#!/bin/bash
# Puts all databases back to what they were in one of the directories in /backup: $BACKUP, or else the newest.
set -euo pipefail

BACKUP=${BACKUP:-$(basename "$(printf '%s\n' /backup/[0-9]*T[0-9]*Z | sort | tail -n 1)")}
cd "/backup/$BACKUP"
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
