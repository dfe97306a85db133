#!/bin/bash
# Tells whether the instance serves. A standby that does not stream, although the primary answers, is not ready.
# While the primary is away a standby stays ready: an update of the instances would else wait for the primary for ever.
set -euo pipefail

pg_isready --quiet
if [ "${POD_NAME##*-}" = 0 ]; then exit 0; fi
streaming=$(psql --no-psqlrc --no-align --tuples-only --dbname=postgres \
  --command="SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'")
if [ "$streaming" = 1 ]; then exit 0; fi
if ! pg_isready --quiet --host="$PRIMARY_HOST" --timeout=2; then exit 0; fi
echo "the standby does not stream from $PRIMARY_HOST" >&2
exit 1
