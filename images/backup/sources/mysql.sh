# MySQL and MariaDB: a compressed dump for each database. Users and their rights are not in it.
# shellcheck shell=bash

EXTENSION=.sql.gz
login=$scratch/login.cnf

connect() {
    (
        umask 077
        # Newer clients ask for TLS, and most servers have a certificate that they signed themselves.
        printf '[mysql]\nconnect-timeout=15\n[client]\nssl-verify-server-cert=0\nprotocol=tcp\n' >"$login"
        printf 'host="%s"\nport=%s\nuser="%s"\npassword="%s"\n' \
            "$(escaped "$SOURCE_HOST")" "$SOURCE_PORT" "$(escaped "$SOURCE_USERNAME")" "$(escaped "$SOURCE_PASSWORD")" \
            >>"$login"
    )
    query 'SELECT 1' >/dev/null
}

# Write a value as it stands between double quotes in an option file.
escaped() {
    sed 's/[\\"]/\\&/g' <<<"$1"
}

query() {
    mariadb --defaults-extra-file="$login" --batch --skip-column-names <<<"$1"
}

files() {
    if [ -n "${SOURCE_DATABASE:-}" ]; then
        echo "$SOURCE_DATABASE$EXTENSION"
        return
    fi
    query "SELECT CONCAT(schema_name, '$EXTENSION') FROM information_schema.schemata
        WHERE schema_name NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys') ORDER BY 1"
}

dump() {
    mariadb-dump --defaults-extra-file="$login" --single-transaction --quick --routines --events --triggers --hex-blob \
        --default-character-set=utf8mb4 -- "${1%"$EXTENSION"}" | gzip
}

check() {
    gzip -d -c | tail -n 3 | grep -q '^-- Dump completed' || fail "the end of the dump is missing"
}

restore() {
    query "CREATE DATABASE IF NOT EXISTS \`${2//\`/\`\`}\`"
    gzip -d -c | mariadb --defaults-extra-file="$login" --default-character-set=utf8mb4 -- "$2"
}
