# MongoDB: one compressed archive, of a database or of all of them.
# shellcheck shell=bash

EXTENSION=.archive.gz
login=$scratch/login.yaml
server=(--host="$SOURCE_HOST" --port="$SOURCE_PORT" --username="$SOURCE_USERNAME" --config="$login"
    --authenticationDatabase="${SOURCE_AUTHENTICATION_DATABASE:-admin}")

connect() {
    (
        umask 077
        printf 'password: "%s"\n' "$(sed 's/[\\"]/\\&/g' <<<"$SOURCE_PASSWORD")" >"$login"
    )
}

files() {
    echo "${SOURCE_DATABASE:-all-databases}$EXTENSION"
}

dump() {
    mongodump "${server[@]}" --archive --gzip ${SOURCE_DATABASE:+--db="$SOURCE_DATABASE"}
}

check() {
    gzip -t
}

measure() {
    :
}

accepts() {
    :
}

restore() {
    local from=${1%"$EXTENSION"}
    if [ "$from" = all-databases ] || [ "$from" = "$2" ]; then
        mongorestore "${server[@]}" --archive --gzip --drop
    else
        mongorestore "${server[@]}" --archive --gzip --drop --nsFrom="$from.*" --nsTo="$2.*"
    fi
}
