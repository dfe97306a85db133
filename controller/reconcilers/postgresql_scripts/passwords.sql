-- The roles of a primary, with the passwords of the Secret.
\set VERBOSITY terse
\set password `printenv POSTGRES_PASSWORD`
\set replication_password `printenv REPLICATION_PASSWORD`
-- A standby may need the new password to connect, and a synchronous commit would wait for it.
SET synchronous_commit = local;
SET log_statement = 'none';
SET log_min_error_statement = 'panic';
SELECT format('CREATE ROLE %I', name) FROM unnest(ARRAY['replicator', 'exporter']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec
ALTER ROLE postgres PASSWORD :'password';
ALTER ROLE replicator LOGIN REPLICATION PASSWORD :'replication_password';
ALTER ROLE exporter LOGIN PASSWORD NULL;
GRANT pg_monitor TO exporter;
