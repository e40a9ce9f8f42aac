// Package doctor says why FTP does not work, and what to change: from the lines of a server's log, or by looking at any
// FTP server as its clients do.
//
// [Kinds] is the one table of what it finds. [ReadLog] and [Examine] fill in who, how often and what was seen. The
// texts are in the catalogs. What was seen is shown as it was sent or logged.
//
// The replies of babelftp are recognized by their texts in all languages, because one code has several causes. Other
// servers are judged by reply codes, never by words of one language, except for a full disk, which many report by words
// only.
//
// As a client it speaks RFC 959, RFC 2389 (FEAT), RFC 2428 (EPSV, EPRT), RFC 2640 (UTF8), RFC 3659 (MLSD, REST) and
// RFC 4217 (TLS).
package doctor
