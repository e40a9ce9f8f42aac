// Package config loads and validates the configuration of babelftp.
//
// A configuration is a YAML document that is decoded into a [Config]. [Load] reports all problems at once, each with
// its file, line and column. Unknown and duplicate keys are problems. A [Loader] loads the configuration repeatedly
// and keeps the [Tenant] of each tenant that did not change, so that a reload only rebuilds what changed.
//
// Package yamlconf decodes the document, and package value has the types of single values. The fields of the structs,
// their comments and their tags are the source of docs/configuration.md and of the JSON Schema; see TestReference.
//
// # Environment variables and files
//
// Values are normally set in the configuration file. There are two alternatives:
//
//   - A secret can be read from another file, which is named by the key with the suffix _file:
//     secret_access_key_file: /run/secrets/s3. A line break at the end of the file is removed. access_key_id can be
//     read from a file too, because it is usually stored together with the secret.
//   - A single value of the server can be set by an environment variable. Its name is BABELFTP_ followed by the keys
//     in upper case, joined by underscores: BABELFTP_S3_ACCESS_KEY_ID. This includes lists that may be written as a
//     single value (cluster.peers). With the suffix _FILE, the variable of a secret names a file:
//     BABELFTP_S3_SECRET_ACCESS_KEY_FILE. Keys below a name (of a tenant, a user, a network) have no variables.
//
// A variable overrides the file in both forms. An empty variable is ignored. It is an error to set a key both
// directly and with _file, and to set a BABELFTP_ variable that does not exist. Variables that Kubernetes sets for a
// Service named babelftp, such as BABELFTP_SERVICE_HOST, are ignored.
//
// Relative paths are relative to the folder of the configuration file.
//
// # Units
//
// Durations have the format of Go (30s, 5m, 1h30m). Sizes are in bytes or have a unit (64MiB, 1GB).
package config
