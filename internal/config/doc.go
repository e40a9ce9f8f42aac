// Package config reads and checks the configuration of babelftp.
//
// A configuration is one YAML document. [Load] reports everything that is wrong with it at once, each problem with
// its file, line and column. A key that is unknown or given twice is a problem.
//
// # Variables and files
//
// Values stand in the file, under their keys. In addition there are two other forms:
//
//   - A secret can come from another file, which its key with _file names: secret_access_key_file: /run/secrets/s3.
//     One line break at the end of that file is dropped. access_key_id has that form too, because it is kept with a
//     secret.
//   - A single value of the server can come from the environment variable named BABELFTP_ and the keys that lead to
//     it, in capitals and joined by _: BABELFTP_S3_ACCESS_KEY_ID. So can a list that may be written as one text
//     (cluster.peers). For a secret the variable with _FILE names a file: BABELFTP_S3_SECRET_ACCESS_KEY_FILE. What
//     stands below a name (of a tenant, a user, a network) has no variables.
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
