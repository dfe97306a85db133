# A MySQL or MariaDB for one drill.
# shellcheck shell=bash

STOP=TERM

# The image of MySQL has the clients under their older names.
if ! command -v mariadb >/dev/null; then
    mariadb() { mysql "$@"; }
    export -f mariadb
fi

# Start it in an empty directory; it answers when this returns. Its environment has no secret.
start() {
    local data=$1/data server root=(--no-defaults --socket="$scratch/socket" --user=root)
    mkdir "$data"
    if command -v mariadb-install-db >/dev/null; then
        server=mariadbd
        env -i PATH="$PATH:/usr/sbin" mariadb-install-db --no-defaults --datadir="$data" --skip-test-db \
            --auth-root-authentication-method=normal >"$scratch/log" 2>&1
    else
        server=mysqld
        env -i PATH="$PATH:/usr/sbin" mysqld --no-defaults --initialize-insecure --datadir="$data" >"$scratch/log" 2>&1
    fi
    env -i PATH="$PATH:/usr/sbin" "$server" --no-defaults --datadir="$data" --socket="$scratch/socket" --port="$SOURCE_PORT" \
        --bind-address=127.0.0.1 --skip-name-resolve --pid-file="$scratch/pid" --tmpdir="$1" \
        --innodb-flush-log-at-trx-commit=0 --skip-log-bin >>"$scratch/log" 2>&1 &
    started=$!
    until mariadb "${root[@]}" <<<'SELECT 1' >/dev/null 2>&1; do
        kill -0 "$started" 2>/dev/null || fail "$(tail -n 1 "$scratch/log")"
        sleep 0.2
    done
    mariadb "${root[@]}" <<<"CREATE USER '$SOURCE_USERNAME'@'127.0.0.1' IDENTIFIED BY '$SOURCE_PASSWORD';
        GRANT ALL ON *.* TO '$SOURCE_USERNAME'@'127.0.0.1' WITH GRANT OPTION"
}

# Run SQL of the user's in DATABASE, in a transaction that reads.
ask() {
    mariadb --defaults-extra-file="$login" --batch --skip-column-names --init-command='SET SESSION TRANSACTION READ ONLY' \
        -- "$1" <<<"$2"
}

# Print each table of DATABASE with the number of its rows; it opens then.
count() {
    local table
    mariadb --defaults-extra-file="$login" --batch --raw --skip-column-names <<<"SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'
        AND table_schema = '$(sed "s/[\\\\']/\\\\&/g" <<<"$1")' ORDER BY 1" |
        while IFS= read -r table; do
            printf '%s\t%s\n' "${table//\`/\`\`}" \
                "$(query "SELECT count(*) FROM \`${1//\`/\`\`}\`.\`${table//\`/\`\`}\`" </dev/null)"
        done
}
