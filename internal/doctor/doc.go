// Package doctor explains why FTP does not work and what to change. It reads the log of a server ([ReadLog]), or
// tests any FTP server as a client ([Examine]).
//
// Both return [Findings]. [Kinds] is the table of all possible findings, with their texts in the catalogs and the
// patterns for lines of a log. A finding adds the client, the number of times and the evidence, which is shown as it
// was sent or logged.
//
// Replies of babelftp are recognized by their texts in all languages, because one code has several causes. Other
// servers are judged by reply codes only, and never by words of one language, except for a full disk, which many
// servers report only in words.
//
// As a client it implements RFC 959, RFC 2389 (FEAT), RFC 2428 (EPSV, EPRT), RFC 2640 (UTF8), RFC 3659 (MLSD,
// REST) and RFC 4217 (TLS).
package doctor
