-- What the primary has before anybody can reach it: our own roles, with the passwords of the Secret.
\set VERBOSITY terse
\set password `printenv POSTGRES_PASSWORD`
\set replication_password `printenv REPLICATION_PASSWORD`
-- No standby can connect meanwhile: a commit that waits for one (synchronous_standby_names) would never end.
SET synchronous_commit = local;
SET log_statement = 'none';
SET log_min_error_statement = 'panic';
SELECT format('CREATE ROLE %I', name) FROM unnest(ARRAY['replicator', 'exporter']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec
ALTER ROLE postgres PASSWORD :'password';
ALTER ROLE replicator LOGIN REPLICATION PASSWORD :'replication_password';
ALTER ROLE exporter LOGIN PASSWORD NULL;
GRANT pg_monitor TO exporter;
