// Package config reads and checks the configuration of babelftp.
//
// A configuration is one YAML document. [Load] reports everything that is wrong with it at once, each problem with
// its file, line and column. A key that is unknown or given twice is a problem.
//
// # Variables and files
//
// Any single value can be given in the file and in the environment, and so can a list that may be written as one text
// (cluster.peers). Other lists, and keys that are names (of tenants, users or directories), come from the file only:
//
//   - under its key in the file: access_key_id: AKIA...
//   - a secret in another file, which its key with _file names: secret_access_key_file: /run/secrets/s3. One line
//     break at the end of that file is dropped. access_key_id has that form too, because it is kept with a secret.
//   - in the environment variable named BABELFTP_ and the keys that lead to it, in capitals and joined by _:
//     BABELFTP_S3_ACCESS_KEY_ID, BABELFTP_TENANTS_ACME_S3_REGION. For a secret the variable with _FILE names a file:
//     BABELFTP_S3_SECRET_ACCESS_KEY_FILE.
//
// Characters of a tenant's, user's or language's name other than ASCII letters and digits become _ in the name of a
// variable. The user "mary.lee@acme" of the tenant "acme-eu" has
// BABELFTP_TENANTS_ACME_EU_USERS_MARY_LEE_ACME_PASSWORD_HASH. A variable that two names share is a problem once it is
// set.
//
// A variable replaces what the file says in either form. An empty one counts as not set. A value given together with
// its _file form is a problem. So is a BABELFTP_ variable that is no setting. Those that Kubernetes sets for a
// Service called babelftp, such as BABELFTP_SERVICE_HOST, are ignored.
//
// Relative paths of files are relative to the folder of the configuration file.
//
// # Units
//
// Durations are written as Go writes them (30s, 5m, 1h30m), sizes in bytes or with a unit (64MiB, 1GB).
package config
