package config

import (
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// oldKeys are keys that configurations have had, with the keys in their place, or with what to do.
func oldKeys() []yamlconf.OldKey {
	const (
		gone   = "this key has gone: "
		auto   = gone + "remove it, because the server finds the best value itself"
		byWork = gone + "only the server and an address have this limit, write it below limits.server or limits.address"
		tenant = "tenants.*."
		user   = "tenants.*.users.*."
	)
	var old []yamlconf.OldKey
	moved := func(from, to string, names ...string) {
		for _, name := range names {
			old = append(old, yamlconf.OldKey{Key: from + name, New: to + name})
		}
	}
	say := func(advice string, keys ...string) {
		for _, key := range keys {
			old = append(old, yamlconf.OldKey{Key: key, Advice: advice})
		}
	}
	usage := []string{"transfers", "upload_rate", "download_rate", "allow", "deny"}
	work := []string{"login_rate", "command_rate", "operations"}

	moved("limits.", "limits.server.", append(append([]string{"sessions"}, usage...), work...)...)
	old = append(old,
		yamlconf.OldKey{Key: "limits.sessions_per_address", New: "limits.address.sessions"},
		yamlconf.OldKey{Key: "limits.per_address", New: "limits.address"})
	moved(tenant+"limits.", tenant+"limits.tenant.", append([]string{"sessions"}, usage...)...)
	old = append(old,
		yamlconf.OldKey{Key: tenant + "limits.sessions_per_user", New: tenant + "limits.user.sessions"},
		yamlconf.OldKey{Key: tenant + "limits.per_user", New: tenant + "limits.user"})
	moved(tenant, tenant+"compatibility.",
		"ascii", "chmod", "backslash", "stor_after_rest", "control_characters", "normalization")
	old = append(old, yamlconf.OldKey{Key: tenant + "versions", New: tenant + "versions_directory"})
	old = append(old, yamlconf.OldKey{Key: tenant + "pathname_encoding", New: tenant + "compatibility.charset"})

	for _, limits := range []string{"limits.", "limits.*.", tenant + "limits.", tenant + "limits.*.", user + "limits."} {
		say(gone+"remove it, because stall_timeout ends transfers, and a slow upload ends where another one needs its place",
			limits+"command_timeout")
		say(gone+"remove it, because each user may have three quarters of the ports that are left", limits+"passive_ports")
	}
	old = append(old, yamlconf.OldKey{Key: tenant + "auth.user.limits", New: tenant + "limits.user"})
	for _, limits := range []string{tenant + "limits.", tenant + "limits.*.", user + "limits."} {
		for _, name := range work {
			say(byWork, limits+name)
		}
		say(gone+"tenants and users have the time of the server, write idle_timeout at the top of the file",
			limits+"idle_timeout")
	}
	say(gone+"the server searches all levels below base_dn, for users of one level write user_dn in place of base_dn",
		tenant+"auth.ldap.scope")
	say(gone+"the directory compares the password", tenant+"auth.user.password_hash")
	say(gone+"to ask all users for certificates write tls.client_certificates in the tenant",
		tenant+"auth.user.certificates")
	say(gone+"write it in the tenant, because the server checks at its start what the bucket can do",
		tenant+"auth.user.overwrite")
	say(auto, tenant+"auth.hook.timeout", tenant+"auth.ldap.timeout", "audit.webhook.timeout", tenant+"webhook.timeout",
		"limits.bans.half_life")
	say(gone+"remove it, because the server waits for 15 minutes", tenant+"webhook.unconfirmed_after")
	say("the attribute with the name stands with the others: write attributes: {name: sAMAccountName}",
		tenant+"auth.ldap.user_attribute")
	say(auto, "upload_concurrency", "download_concurrency", "limits.min_upload_rate",
		"limits.sessions_before_login", "limits.sessions_before_login_per_address")
	say(gone+"remove it, because the profile decides; for a server that refuses checksums write profile: strict",
		"s3.checksums", tenant+"s3.checksums", tenant+"folders.*.s3.checksums")
	for _, s3 := range []string{"", tenant, tenant + "folders.*."} {
		say(gone+"remove it, the name is babelftp-TENANT; to tell sessions apart in policies write session_tags",
			s3+"s3.assume_role.session_name")
	}
	for _, s3 := range []string{"", tenant, tenant + "folders.*."} {
		say(gone+"remove it, because credentials are good for an hour, or for as long as presign needs",
			s3+"s3.assume_role.duration")
		say(gone+"set AWS_ENDPOINT_URL_STS in the environment of the server", s3+"s3.assume_role.sts_endpoint")
	}
	say(gone+"remove it, because with tls.acme you agree to the terms of service of the authority", "tls.acme.agree")
	say(gone+"remove it, because authorities send no mail about certificates any more", "tls.acme.email")
	for _, service := range []string{"hook", "ldap"} {
		for _, auth := range []string{"", tenant} {
			old = append(old, yamlconf.OldKey{Key: auth + "auth." + service + ".cache", New: auth + "auth.cache"})
		}
	}
	say(gone+"remove it, because LANG shows greeting and welcome again", tenant+"greet_after_lang")
	say(gone+"remove it, because the first reply is in English too, unless the tenant has a greeting; write English there "+
		"if readers need it", "bilingual_greeting")
	say(gone+"remove it, or add the names that clients send to the hosts of their tenant", "unknown_hosts")
	say(gone+"for a load balancer that hides addresses write limits.address.sessions: 0, else remove it",
		"limits.failed_login_delay")
	say(gone+"remove it, because a session ends after five wrong passwords; write limits.bans for failures of many sessions",
		"max_failed_logins")
	say(gone+"remove it, because a data connection has 30 seconds to open; for less write stall_timeout", "data_timeout")
	say("this key has moved: write tenant_defaults.tls.require_session_reuse, or tls.require_session_reuse of single tenants",
		"tls.require_session_reuse")
	old = append(old, yamlconf.OldKey{Key: "tls.acme.ca_file", New: "ca_file"},
		yamlconf.OldKey{Key: "audit.webhook.ca_file", New: "ca_file"},
		yamlconf.OldKey{Key: tenant + "webhook.ca_file", New: tenant + "ca_file"},
		yamlconf.OldKey{Key: tenant + "inspect.hook.ca_file", New: tenant + "ca_file"})
	for _, service := range []string{"hook", "ldap", "ftp"} {
		for _, auth := range []string{"", tenant} {
			old = append(old, yamlconf.OldKey{Key: auth + "auth." + service + ".ca_file", New: auth + "ca_file"})
		}
	}
	say(gone+`for standard output write audit.file: "-"`, "audit.stdout")
	say(gone+"name a folder that the servers share, or let cert-manager obtain certificates on Kubernetes",
		"tls.acme.storage")
	say(gone+"each replica bans for itself", "limits.store")
	say(gone+"a hook can verify tokens, write auth.hook", tenant+"auth.jwt")
	say(gone+"remove it; SIZE and MDTM ask S3", "listing_cache", tenant+"listing_cache")
	say(gone+"set OTEL_EXPORTER_OTLP_ENDPOINT, and the other variables of OpenTelemetry, in the environment", "traces")
	say("administrators have names: write admin.users_file, a file with a line NAME:HASH for each, and hashes by "+
		"`babelftp hash-password`", "admin.token", "admin.token_file")
	old = append(old, yamlconf.OldKey{Key: user + "password", New: user + "password_hash",
		Advice: "passwords are not kept in plain text: write password_hash with what `babelftp hash-password` prints"})
	return old
}
