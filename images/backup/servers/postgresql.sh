# A PostgreSQL for one drill.
# shellcheck shell=bash

STOP=INT

# Start it in an empty directory; it answers when this returns. Its environment has no secret.
start() {
    local data=$1 programs password=$scratch/password
    programs=$(clients | tail -n 1)
    programs=${programs#* }
    printf '%s\n' "$SOURCE_PASSWORD" >"$password"
    env -i PATH="$PATH" "$programs/initdb" --pgdata="$data" --username="$SOURCE_USERNAME" --pwfile="$password" \
        --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8 --no-sync >"$scratch/log"
    env -i PATH="$PATH" "$programs/postgres" -D "$data" -h 127.0.0.1 -p "$SOURCE_PORT" \
        -c unix_socket_directories= -c fsync=off -c full_page_writes=off -c wal_level=minimal -c max_wal_senders=0 \
        >>"$scratch/log" 2>&1 &
    started=$!
    until "$programs/pg_isready" --quiet --host=127.0.0.1 --port="$SOURCE_PORT"; do
        kill -0 "$started" 2>/dev/null || fail "$(tail -n 1 "$scratch/log")"
        sleep 0.2
    done
}

# Run SQL of the user's in DATABASE, in a transaction that reads.
ask() {
    PGDATABASE=$1 PGOPTIONS='-c default_transaction_read_only=on' "$bin/psql" -A -t -X -q -v ON_ERROR_STOP=1 -f - <<<"$2"
}

# Print each table of DATABASE with the number of its rows; it opens then.
count() {
    PGDATABASE=$1 "$bin/psql" -A -t -X -q -F $'\t' -v ON_ERROR_STOP=1 -f - <<'SQL'
SELECT format('SELECT %L, count(*) FROM ONLY %I.%I', format('%I.%I', nspname, relname), nspname, relname)
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind = 'r' AND nspname NOT IN ('pg_catalog', 'information_schema') AND nspname !~ '^pg_(toast|temp)'
ORDER BY 1 \gexec
SQL
}
