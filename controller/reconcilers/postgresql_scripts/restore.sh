#!/bin/bash
# Puts all databases back to what they were in one of the directories in /backup: $BACKUP, or else the newest.
set -euo pipefail

BACKUP=${BACKUP:-$(basename "$(printf '%s\n' /backup/[0-9]*T[0-9]*Z | sort | tail -n 1)")}
cd "/backup/$BACKUP"
psql --no-psqlrc --quiet --dbname=postgres --file=globals.sql # that roles exist already is no fault
for dump in *.dump; do
  if [ "$dump" = postgres.dump ]; then
    pg_restore --clean --if-exists --exit-on-error --dbname=postgres "$dump"
  else
    pg_restore --clean --if-exists --create --exit-on-error --dbname=postgres "$dump"
  fi
  echo "restored ${dump%.dump}"
done
