# PostgreSQL: the roles of the server, without their passwords, and a dump in custom format for each database.
# shellcheck shell=bash

EXTENSION=.dump
export PGHOST=$SOURCE_HOST PGPORT=$SOURCE_PORT PGUSER=$SOURCE_USERNAME PGPASSWORD=$SOURCE_PASSWORD
export PGCONNECT_TIMEOUT=15

# Choose the clients: of the server's major version, or the next one there is, for an older pg_dump refuses.
connect() {
    local any major
    any=$(clients | tail -n 1)
    PGDATABASE=${SOURCE_DATABASE:-postgres}
    export PGDATABASE
    server=$("${any#* }/psql" -A -t -X -c 'SHOW server_version_num')
    server=$((server / 10000))
    bin=""
    while read -r major path; do
        if [ -z "$bin" ] && [ "$major" -ge "$server" ]; then
            bin=$path
        fi
    done < <(clients)
    [ -n "$bin" ] || fail "the server is PostgreSQL $server, and the newest clients here are of ${any%% *}"
}

# Print the clients there are, each with its major version, the oldest first.
clients() {
    local path
    for path in "${POSTGRESQL_CLIENTS:-/usr/lib/postgresql}"/*/bin; do
        printf '%s %s\n' "$(basename "$(dirname "$path")")" "$path"
    done | sort -n
}

files() {
    echo globals.sql
    if [ -n "${SOURCE_DATABASE:-}" ]; then
        echo "$SOURCE_DATABASE$EXTENSION"
        return
    fi
    "$bin/psql" -A -t -X -c \
        "SELECT datname || '$EXTENSION' FROM pg_database WHERE datallowconn AND NOT datistemplate ORDER BY 1"
}

dump() {
    if [ "$1" = globals.sql ]; then
        "$bin/pg_dumpall" --database="$PGDATABASE" --globals-only --no-role-passwords
    else
        PGDATABASE=${1%"$EXTENSION"} "$bin/pg_dump" --format=custom
    fi
}

check() {
    if [ "$1" = globals.sql ]; then
        grep -q 'PostgreSQL database cluster dump complete' || fail "the end of the dump is missing"
    else
        # Of a row the beginning is enough: one line may be as long as the largest value.
        "$bin/pg_restore" --file=- | cut -b 1-1024 | awk '
            copies && /^\\\.$/ { copies = 0; next }
            copies { rows[table]++; next }
            /^COPY / && (/ FROM stdin;$/ || length($0) == 1024) &&
                match($0, /^COPY ("([^"]|"")*"|[^". ]+)\.("([^"]|"")*"|[^" (]+)/) {
                copies = 1
                table = substr($0, 6, RLENGTH - 5)
                rows[table] = 0
            }
            END { for (table in rows) printf "%s\t%.0f\n", table, rows[table] }
        '
    fi
}

measure() {
    printf 'server\tpostgres:%s\n' "$server"
    "$bin/psql" -A -t -X -F $'\t' -c "SELECT 'size', datname, pg_database_size(oid) FROM pg_database
        WHERE datallowconn AND NOT datistemplate AND datname = COALESCE(NULLIF('$(escaped "${SOURCE_DATABASE:-}")', ''), datname)"
}

# Write a value as it stands between single quotes in SQL.
escaped() {
    sed "s/'/''/g" <<<"$1"
}

# Refuse a dump of a newer server, such as postgres:16.
accepts() {
    local dumped=${1#postgres:}
    if [ -n "$dumped" ] && [ "$dumped" -gt "$server" ]; then
        fail "the backup is of PostgreSQL $dumped, and the server is $server, which cannot read it"
    fi
}

# Mark an empty server as one that this restore fills; refuse another.
claim() {
    local databases tables
    [ "$(sql "SELECT count(*) FROM pg_roles WHERE rolname = 'gatewright_restores'")" -eq 0 ] || return 0
    databases=$(sql "SELECT string_agg(datname, ', ' ORDER BY datname) FROM pg_database
        WHERE NOT datistemplate AND datname <> 'postgres'")
    tables=$(sql "SELECT string_agg(relname, ', ' ORDER BY relname) FROM pg_class
        JOIN pg_namespace ON pg_namespace.oid = relnamespace
        WHERE relkind IN ('r', 'p') AND nspname <> 'information_schema' AND nspname !~ '^pg_'")
    if [ -n "$databases$tables" ]; then
        fail "the server is not empty: it has ${databases:+the databases $databases}${tables:+ tables $tables}; nothing was written"
    fi
    sql 'CREATE ROLE gatewright_restores NOLOGIN'
}

# Take the mark away, once everything is restored.
release() {
    sql 'DROP ROLE IF EXISTS gatewright_restores'
}

sql() {
    "$bin/psql" -A -t -X -q -v ON_ERROR_STOP=1 -c "$1" </dev/null
}

# A database is restored as a whole or not at all. Roles that exist already are left alone.
restore() {
    local database=$2 there
    if [ "$1" = globals.sql ]; then
        if [ "$("$bin/psql" -A -t -X -c 'SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user' </dev/null)" = f ]; then
            cat >/dev/null
            echo "$SOURCE_USERNAME may not create roles: those of the backup must exist"
            return
        fi
        "$bin/psql" -X -q -f - >/dev/null 2> >(grep -v 'already exists' >&2)
        return
    fi
    there=$("$bin/psql" -A -t -X -v ON_ERROR_STOP=1 -v name="$database" <<<"SELECT count(*) FROM pg_database WHERE datname = :'name'")
    if [ "$there" -eq 0 ]; then
        "$bin/psql" -X -q -v ON_ERROR_STOP=1 -v name="$database" <<<'CREATE DATABASE :"name"'
    fi
    "$bin/pg_restore" --clean --if-exists --exit-on-error --single-transaction \
        --dbname="dbname='$(sed "s/[\\\\']/\\\\&/g" <<<"$database")'"
}
