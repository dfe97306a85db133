# MySQL and MariaDB: a compressed dump for each database. Users and their rights are not in it.
# shellcheck shell=bash

EXTENSION=.sql.gz
login=$scratch/login.cnf

connect() {
    (
        umask 077
        # Newer clients ask for TLS, and most servers have a certificate that they signed themselves.
        printf '[mysql]\nconnect-timeout=15\n[client]\nloose-ssl-verify-server-cert=0\nprotocol=tcp\n' >"$login"
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
    # Each row is a line of its own, whose beginning is enough: one line may be as long as the largest value.
    gzip -d -c | cut -b 1-1024 | awk '
        /^-- Dumping data for table `.*`$/ { table = substr($0, 28, length($0) - 28); rows[table] = 0 }
        /^INSERT INTO `.*` VALUES$/ { inserts = 1; next }
        inserts && /^\(/ { rows[table]++; next }
        { inserts = 0 }
        /^-- Dump completed/ { completed = NR }
        END {
            for (table in rows) printf "%s\t%.0f\n", table, rows[table]
            exit !(completed && NR - completed < 3)
        }
    ' || fail "the end of the dump is missing"
}

measure() {
    local version database bytes
    version=$(query 'SELECT VERSION()')
    case $version in
        *MariaDB*) printf 'server\tmariadb:%s\n' "$(cut -d . -f 1-2 <<<"$version")" ;;
        *) printf 'server\tmysql:%s\n' "$(cut -d . -f 1-2 <<<"$version")" ;;
    esac
    query 'SELECT table_schema, SUM(data_length + index_length) FROM information_schema.tables GROUP BY 1' |
        while IFS=$'\t' read -r database bytes; do
            if [ "$database" = "${SOURCE_DATABASE:-$database}" ]; then
                printf 'size\t%s\t%s\n' "$database" "${bytes/NULL/0}"
            fi
        done
}

accepts() {
    :
}

restore() {
    query "CREATE DATABASE IF NOT EXISTS \`${2//\`/\`\`}\`"
    gzip -d -c | mariadb --defaults-extra-file="$login" --default-character-set=utf8mb4 -- "$2"
}
