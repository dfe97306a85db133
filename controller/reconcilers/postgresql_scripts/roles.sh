#!/bin/bash
# Makes roles and databases, as often as it is run: a file for each role in /users (its password), a line for each
# database in $DATABASES (its name and its owner).
set -euo pipefail

# After a primary is lost, nothing answers at its address until Patroni has chosen another one.
timeout 120 bash -c 'until pg_isready --quiet --timeout=5; do sleep 1; done'

sql() {
  psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --set=VERBOSITY=terse --dbname=postgres --file=-
}

for file in /users/*; do
  [ -e "$file" ] || continue
  NAME=${file##*/} FILE=$file sql <<'SQL'
\set name `printenv NAME`
\set password `cat "$FILE"`
SET log_statement = 'none';
SET log_min_error_statement = 'panic';
SELECT format('CREATE ROLE %I', :'name') WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'name') \gexec
ALTER ROLE :"name" LOGIN PASSWORD :'password';
SQL
  echo "role ${file##*/} is there"
done

while read -r name owner; do
  [ -n "$name" ] || continue
  NAME=$name OWNER=$owner sql <<'SQL'
\set name `printenv NAME`
\set owner `printenv OWNER`
SELECT format('CREATE DATABASE %I OWNER %I', :'name', :'owner')
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'name') \gexec
ALTER DATABASE :"name" OWNER TO :"owner";
SQL
  echo "database $name is there"
done <<<"$DATABASES"
