#!/bin/bash
# Patroni's callback, with the action and the role: sets the roles and passwords of the Secret in a primary.
set -euo pipefail

if [ "$2" != primary ]; then exit 0; fi
sql() { psql --no-psqlrc --no-align --tuples-only --quiet --set=ON_ERROR_STOP=1 --dbname=postgres "$@"; }
# The callback of a start runs while the coming primary is still read-only.
for _ in {1..300}; do
  if [ "$(sql --command='SELECT pg_is_in_recovery()')" = f ]; then
    sql --file=/etc/gatewright/passwords.sql
    exit 0
  fi
  sleep 1
done
echo "the primary is still read-only: its passwords are not set" >&2
exit 1
