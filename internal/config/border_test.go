package config

import (
	"strings"
	"testing"
)

// borderTests is the configuration of the tests of the border.
const borderTests = `
s3: {endpoint: "https://s3.server.example", access_key_id: SERVER, secret_access_key: server-secret,
     assume_role: {role_arn: "arn:aws:iam::1:role/server", session_tags: {tenant: "{tenant}"}}}
state: {bucket: team-a-state, prefix: state/, keys: "` + stateKeys + `"}
passive: {public_address: ftp.server.example}
tenants: {file: {hosts: [file.example], bucket: file-data, prefix: in/, folders: {/x: {bucket: file-folder, prefix: y/}}, users: {u: {disabled: true}},
     inspect: {clamd: "tcp://127.0.0.1:3310", quarantine: refused/}}}
kubernetes:
  folder: run
  namespaces:
    team-a:
      buckets: [team-a-*, shared/team-a/*, exact, file-*, other/in, "mid/*/in/"]
      addresses: ["https://hooks.example.com", "ldaps://*.example.com:636", "https://s3.team-a.example:*", "http://[2001:db8::1]:8080",
                  "unix:/run/clamav/clamd.ctl", "tcp://clamd:3310", "icap://icap.example.com"]
      hosts: ["*.team-a.example", exact.example, 192.0.2.1]
      arns: ["arn:aws:iam::1:role/team-a-*", "arn:aws:kms:eu-central-1:1:key/abc", alias/team-a]
    team-b: {}
`

const stateKeys = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

// ownCredentials are credentials of the namespace.
const ownCredentials = "access_key_id: OWN, secret_access_key_secret: {name: s3}"

// Each spec of a tenant is accepted or refused with this message.
func TestBorder(t *testing.T) {
	for _, tc := range []struct{ spec, refused string }{
		// Buckets and prefixes.
		{"bucket: team-a-1", ""},
		{"bucket: team-a-1, prefix: x", ""},
		{"bucket: exact", ""},
		{"bucket: team-b-1", `spec.bucket: the prefix "" in the bucket team-b-1 is not one of the buckets of the namespace`},
		{"bucket: exact1", "spec.bucket"},
		{"bucket: xteam-a-1", "spec.bucket"},
		{"bucket: shared", "spec.bucket"},
		{"bucket: shared, prefix: team-a", ""},
		{"bucket: shared, prefix: team-a/x/", ""},
		{"bucket: shared, prefix: team-ab/", "spec.bucket"},
		{"bucket: shared, prefix: team", "spec.bucket"},
		{"bucket: shared, prefix: team-a/../team-b/", "must not contain . or .."},
		{"bucket: other, prefix: in/x", ""},
		{"bucket: other, prefix: inside", "spec.bucket"},
		{"bucket: mid, prefix: x/in", ""},
		{"bucket: mid, prefix: x/y/in", "spec.bucket"},
		{"bucket: team-b-1, s3: {" + ownCredentials + "}", ""},
		{"bucket: team-b-1, s3: {access_key_id: OWN}", "spec.s3.secret_access_key_secret: is missing"},
		{"bucket: team-b-1, s3: {secret_access_key_secret: {name: s3}}", "spec.s3.access_key_id: is missing"},
		{"bucket: team-b-1, s3: {secret_access_key_secret: {name: s3}}", "spec.bucket"},
		{"bucket: team-a-state", "overlaps the shared state of the server"},
		{"bucket: team-a-state, prefix: state/x", "overlaps the shared state of the server"},
		{"bucket: team-a-state, prefix: x", ""},
		{"bucket: file-data, prefix: out", ""},
		{"bucket: file-data, prefix: in/x", "BucketTaken"},
		{"bucket: file-folder, prefix: y/x", "BucketTaken"},
		{"bucket: file-data, prefix: refused/x", "BucketTaken"},
		{"bucket: file-folder, prefix: refused/", "BucketTaken"},
		// Folders.
		{"bucket: exact, folders: {/a: {bucket: team-a-2}}", ""},
		{"bucket: exact, folders: {/a: {bucket: team-b-2}}", "spec.folders./a: the prefix"},
		{"bucket: shared, prefix: team-a/, folders: {/a: {prefix: team-b/}}", "spec.folders./a: the prefix"},
		{"bucket: exact, folders: {/a: {bucket: team-b-2, s3: {" + ownCredentials + "}}}", ""},
		{"bucket: team-b-1, s3: {" + ownCredentials + "}, folders: {/a: {bucket: team-b-2}}", ""},
		{"bucket: team-b-1, folders: {/a: {bucket: team-b-2, s3: {" + ownCredentials + "}}}", "spec.bucket"},
		{"bucket: exact, folders: {/a: {bucket: team-a-2, s3: {endpoint: 'https://s3.team-a.example'}}}", "spec.folders./a.s3.endpoint: requires"},
		// Quarantines are places too.
		{"bucket: exact, inspect: {clamd: 'tcp://clamd:3310', quarantine: q/}, prefix: in", ""},
		{"bucket: shared, prefix: team-a/in/, inspect: {clamd: 'tcp://clamd:3310', quarantine: team-a/q/}", ""},
		{"bucket: shared, prefix: team-a/in/, inspect: {clamd: 'tcp://clamd:3310', quarantine: team-b/q/}",
			`spec.inspect.quarantine: the prefix "team-b/q/" in the bucket shared is not`},
		{"bucket: shared, prefix: team-a/in/, inspect: {clamd: 'tcp://clamd:3310', quarantine: .babelftp/q/}", "spec.inspect.quarantine: the prefix"},
		{"bucket: team-a-state, prefix: x/, inspect: {clamd: 'tcp://clamd:3310', quarantine: state/bans/}", "spec.inspect.quarantine: \"state/bans/\" overlaps"},
		{"bucket: file-data, prefix: out, inspect: {clamd: 'tcp://clamd:3310', quarantine: in/}", "BucketTaken"},
		// Addresses of S3.
		{"bucket: x-1, s3: {endpoint: 'https://s3.team-a.example', " + ownCredentials + "}", ""},
		{"bucket: x-1, s3: {endpoint: 'https://s3.team-a.example:9000', " + ownCredentials + "}", ""},
		{"bucket: exact, s3: {endpoint: 'https://s3.team-a.example'}", "spec.s3.endpoint: requires access_key_id and secret_access_key_secret"},
		{"bucket: x-1, s3: {endpoint: 'http://s3.team-a.example', " + ownCredentials + "}", "spec.s3.endpoint: is not one of the addresses"},
		{"bucket: x-1, s3: {endpoint: 'http://169.254.169.254', " + ownCredentials + "}", "spec.s3.endpoint: is not one of the addresses"},
		{"bucket: exact, s3: {public_endpoint: 'https://evil.example'}", "spec.s3.public_endpoint: is not one of the addresses"},
		{"bucket: exact, s3: {region: 'x.evil.example/'}", "spec.s3.region: \"x.evil.example/\" is not a region"},
		{"bucket: exact, s3: {region: 'evil.example#'}", "spec.s3.region"},
		{"bucket: exact, s3: {region: eu-central-1}", ""},
		// Roles and keys.
		{"bucket: exact, s3: {assume_role: {role_arn: 'arn:aws:iam::1:role/team-a-x'}}", ""},
		{"bucket: exact, s3: {assume_role: {role_arn: 'arn:aws:iam::1:role/{tenant}'}}", "spec.s3.assume_role.role_arn"},
		{"bucket: exact, s3: {assume_role: {role_arn: 'arn:aws:iam::1:role/server'}}", "spec.s3.assume_role.role_arn"},
		{"bucket: exact, s3: {assume_role: {session_tags: {tenant: team-b_x}}}", "spec.s3.assume_role.session_tags: is not allowed with the credentials of the server"},
		{"bucket: exact, s3: {assume_role: {external_id: other}}", "spec.s3.assume_role.external_id: is not allowed"},
		{"bucket: exact, s3: {" + ownCredentials + ", assume_role: {role_arn: 'arn:aws:iam::2:role/x', session_tags: {a: b}}}", ""},
		{"bucket: exact, folders: {/a: {bucket: exact, prefix: x, s3: {assume_role: {role_arn: 'arn:aws:iam::1:role/x'}}}}", "spec.folders./a.s3.assume_role.role_arn"},
		{"bucket: exact, objects: {encryption: kms, kms_key_id: 'arn:aws:kms:eu-central-1:1:key/abc'}", ""},
		{"bucket: exact, objects: {encryption: kms, kms_key_id: abc}", "spec.objects.kms_key_id: \"abc\" is not one of the ARNs"},
		{"bucket: exact, objects: {rules: [{set: {kms_key: alias/team-a}}]}", ""},
		{"bucket: exact, objects: {rules: [{set: {kms_key: alias/team-b}}]}", "spec.objects.rules.0.set.kms_key"},
		{"bucket: exact, objects: {rules: [{set: {kms_key: 'alias/{user}'}}]}", "spec.objects.rules.0.set.kms_key"},
		{"bucket: exact, s3: {" + ownCredentials + "}, objects: {rules: [{set: {kms_key: 'alias/{user}'}}]}", ""},
		// Services.
		{"bucket: exact, auth: {hook: {url: 'https://hooks.example.com/login?x=1'}}", ""},
		{"bucket: exact, auth: {hook: {url: 'https://hooks.example.com:443/'}}", ""},
		{"bucket: exact, auth: {hook: {url: 'HTTPS://Hooks.Example.com./'}}", ""},
		{"bucket: exact, auth: {hook: {url: 'https://hooks.example.com:8443/'}}", "spec.auth.hook.url: is not one of the addresses"},
		{"bucket: exact, auth: {hook: {url: 'http://hooks.example.com/'}}", "spec.auth.hook.url: is not one of the addresses"},
		{"bucket: exact, auth: {hook: {url: 'https://hooks.example.com.evil/'}}", "spec.auth.hook.url: is not one of the addresses"},
		{"bucket: exact, auth: {hook: {url: 'https://hooks.example.com@evil.example/'}}", "spec.auth.hook.url"},
		{"bucket: exact, auth: {hook: {url: 'https://hooks.example.com\\@evil.example/'}}", "spec.auth.hook.url"},
		{"bucket: exact, auth: {hook: {url: 'https://evil.example/#@hooks.example.com/'}}", "spec.auth.hook.url"},
		{"bucket: exact, auth: {hook: {url: 'https://hooks.example.com%2eevil/'}}", "spec.auth.hook.url"},
		{"bucket: exact, auth: {ldap: {urls: ['ldaps://a.example.com'], user_dn: 'uid={user},dc=x'}}", ""},
		{"bucket: exact, auth: {ldap: {urls: ['ldaps://a.example.com', 'ldaps://a.b.example.com'], user_dn: 'uid={user},dc=x'}}", "spec.auth.ldap.urls.1"},
		{"bucket: exact, auth: {ldap: {urls: ['ldap://a.example.com:636'], user_dn: 'uid={user},dc=x'}}", "spec.auth.ldap.urls.0"},
		{"bucket: exact, auth: {ftp: {address: 'old.example:21'}}", "spec.auth.ftp: is not allowed in a custom resource"},
		{"bucket: exact, webhook: {url: 'https://hooks.example.com', secret_secret: {name: s3}}", ""},
		{"bucket: exact, webhook: {url: 'https://10.0.0.1', secret_secret: {name: s3}}", "spec.webhook.url: is not one of the addresses"},
		{"bucket: exact, inspect: {clamd: 'unix:/run/clamav/clamd.ctl'}", ""},
		{"bucket: exact, inspect: {clamd: 'unix:/run/babelftp/admin/admin.sock'}", "spec.inspect.clamd: is not one of the addresses"},
		{"bucket: exact, inspect: {clamd: 'unix:/run/clamav/../babelftp/admin.sock'}", "spec.inspect.clamd: is not one of the addresses"},
		{"bucket: exact, inspect: {clamd: 'tcp://x@evil:3310'}", "spec.inspect.clamd: is not one of the addresses"},
		{"bucket: exact, inspect: {icap: 'icap://icap.example.com/scan'}", ""},
		{"bucket: exact, inspect: {icap: 'icap://icap.example.com:1345/scan'}", "spec.inspect.icap: is not one of the addresses"},
		{"bucket: exact, inspect: {hook: {url: 'http://[2001:db8::1]:8080/', secret_secret: {name: s3}}}", ""},
		{"bucket: exact, inspect: {hook: {url: 'http://[2001:db8::2]:8080/', secret_secret: {name: s3}}}", "spec.inspect.hook.url"},
		// Hosts.
		{"bucket: exact, hosts: [ftp.team-a.example, exact.example, 192.0.2.1]", ""},
		{"bucket: exact, hosts: [ftp.team-b.example]", "spec.hosts.0: ftp.team-b.example is not one of the hosts of the namespace"},
		{"bucket: exact, hosts: [a.b.team-a.example]", "spec.hosts.0"},
		{"bucket: exact, hosts: [ftp.team-a.example, file.example]", "spec.hosts.1"},
		// Files and users of the server.
		{"bucket: exact, users_file: /etc/passwd", "spec.users_file: is not allowed in a custom resource: create an FTPUser for each user"},
		{"bucket: exact, users_store: state", "spec.users_store: is not allowed"},
		{"bucket: exact, ca_file: /etc/passwd", "spec.ca_file: names a file of the server, which a custom resource must not: store the content in a Secret, and write ca_secret: {name: NAME}"},
		{"bucket: exact, tls: {key_file: /etc/passwd}", "spec.tls.key_file: names a file of the server"},
		{"bucket: exact, s3: {access_key_id_file: /etc/passwd}", "spec.s3.access_key_id_file: names a file of the server"},
		{"bucket: exact, s3: {secret_access_key: x}", "spec.s3.secret_access_key: is a secret, which a custom resource must not contain: store it in a Secret, and write secret_access_key_secret: {name: NAME}"},
		{"bucket: exact, s3: {secret_access_key_secret: {name: team-b/s3}}", "spec.s3.secret_access_key_secret.name: is not the name of an object"},
		{"bucket: exact, s3: {secret_access_key_secret: {name: s3, namespace: team-b}}", "spec.s3.secret_access_key_secret.namespace: unknown key"},
		{"bucket: exact, s3: {secret_access_key_secret: {name: s3, key: ../x}}", "spec.s3.secret_access_key_secret.key: is not a key of a Secret"},
	} {
		t.Run(tc.spec, func(t *testing.T) {
			f := newFakeCluster(t, borderTests)
			f.secret("team-a", "s3", "secret_access_key", "own-secret", "secret", "0123456789abcdef0123")
			f.tenant("team-a/acme", "{"+tc.spec+"}")
			f.user("team-a/alice", "acme")
			f.run()
			o := f.outcome(tenantA)
			if got := string(o.Reason) + ": " + o.Message; (o.Reason == ResourceAccepted) != (tc.refused == "") || !strings.Contains(got, tc.refused) {
				t.Errorf("got %s, want %q", got, tc.refused)
			}
		})
	}
}

// Without a list, a namespace may use nothing of the server, and any host that is not a name of the server.
func TestBorderWithoutLists(t *testing.T) {
	f := newFakeCluster(t, borderTests)
	f.tenant("team-b/beta", "{bucket: team-a-1, hosts: [any.example]}")
	f.run()
	f.want(tenantB, ResourceNotAllowed, 0, "is not one of the buckets of the namespace: ask the administrators to allow it in kubernetes.namespaces")
	f.secret("team-b", "s3", "secret_access_key", "own-secret")
	f.tenant("team-b/beta", "{bucket: team-a-1, hosts: [any.example], s3: {"+ownCredentials+"}}")
	f.run()
	f.want(tenantB, ResourceAccepted, 2, "")
	f.tenant("team-b/beta", "{bucket: team-a-1, hosts: [ftp.server.example], s3: {"+ownCredentials+"}}")
	f.run()
	f.want(tenantB, ResourceNotAllowed, 2, "spec.hosts.0: ftp.server.example is a name of the server itself")
}

// Defaults of the server apply to resources, but secrets of the server never go to an address of a namespace.
func TestDefaultsOfResources(t *testing.T) {
	defaults := borderTests + `
tenant_defaults:
  languages: [en, fr]
  greeting: {en: Hello, fr: Bonjour}
  quota: 1GiB
  users_store: state
  rehash_passwords: false
  s3: {access_key_id: DEFAULT, secret_access_key: default-secret, region: eu-central-1}
  objects: {encryption: customer, customer_key: "` + stateKeys + `"}
  folders: {/shared: {bucket: shared, prefix: all, s3: {access_key_id: FOLDER, secret_access_key: folder-secret}}}
  auth: {hook: {url: "https://auth.server.example", secret: hook-secret}}
  webhook: {url: "https://events.server.example", secret: webhook-secret-0123, skip: ["*.tmp"]}
  inspect: {hook: {url: "https://scan.server.example", secret: inspect-secret-0123}, timeout: 10s}
`
	defaults = strings.Replace(defaults, "inspect: {clamd: \"tcp://127.0.0.1:3310\", quarantine: refused/}", "prefix: files/", 1)
	defaults = strings.Replace(defaults, "prefix: in/, folders: {/x: {bucket: file-folder, prefix: y/}}, ", "", 1)
	f := newFakeCluster(t, defaults)
	f.secret("team-a", "s3", "secret_access_key", "own-secret", "secret", "0123456789abcdef0123", "bind_password", "own-bind")
	get := func(spec string) *Tenant {
		t.Helper()
		f.tenant("team-a/acme", spec)
		f.run()
		f.want(tenantA, ResourceAccepted, f.resources[tenantA].Generation, "")
		return f.merged.Tenants["team-a_acme"]
	}
	a := get("{bucket: exact, greeting: {en: Hi}}")
	if a.Quota.String() != "1GiB" || len(a.Greeting) != 2 || a.UsersStore != "" || a.RehashPasswords != nil || a.S3.AccessKeyID != "DEFAULT" ||
		a.Auth.Hook.Secret.Reveal() != "hook-secret" || a.Folders["/shared"] == nil || a.Objects.Key() == nil {
		t.Errorf("got %+v", a)
	}
	f.tenant("team-b/beta", "{bucket: data, s3: {endpoint: 'https://s3.team-a.example', "+ownCredentials+"}}")
	a = get("{bucket: x-1, s3: {endpoint: 'https://s3.team-a.example', " + ownCredentials + "}, auth: {ldap: {urls: ['ldaps://a.example.com'], " +
		"base_dn: 'dc=x', bind_dn: 'cn=x', bind_password_secret: {name: s3}}}, webhook: {url: 'https://hooks.example.com', secret_secret: {name: s3}}, " +
		"inspect: {clamd: 'tcp://clamd:3310'}, folders: {/shared: {prefix: y}}}")
	if a.Objects.Key() != nil || a.Auth.Hook != (Hook{}) || a.Auth.LDAP.BindPassword.Reveal() != "own-bind" ||
		a.Inspect.Hook != (Receiver{}) ||
		a.Webhook.Secret.Reveal() != "0123456789abcdef0123" || a.S3.SecretAccessKey.Reveal() != "own-secret" || a.S3.Region != "eu-central-1" ||
		a.Folders["/shared"].S3.IsSet() || a.Folders["/shared"].Bucket != "" || len(a.Webhook.Skip) != 0 {
		t.Errorf("got %+v", a)
	}
	// A prefix in a bucket of the defaults is a place of the resource.
	f.tenant("team-a/acme", "{bucket: exact, folders: {/shared: {bucket: shared, prefix: team-b/}}}")
	f.run()
	f.want(tenantA, ResourceNotAllowed, 2, "spec.folders./shared")
	f.tenant("team-a/acme", "{bucket: exact, prefix: in/, inspect: {clamd: 'tcp://clamd:3310', quarantine: q/}}")
	f.run()
	f.want(tenantA, ResourceNotAllowed, 2, `spec.inspect.quarantine: the prefix "q/" in the bucket shared`)
}

func TestPatterns(t *testing.T) {
	for _, tc := range []struct {
		pattern, text, except string
		matches, begins       bool
	}{
		{"a*c", "abbc", "", true, true}, {"a*c", "a/c", "/", false, false}, {"*", "", "", true, true}, {"*", "a/b", "/", false, true},
		{"**", "ab", "", true, true}, {"a", "b", "", false, false}, {"a", "ab", "", false, true}, {"", "a", "", false, true},
		{"*a*b*", "xxaxxbxx", "", true, true}, {strings.Repeat("*a", 200), strings.Repeat("a", 400) + "b", "", false, true},
	} {
		if got := matches(tc.pattern, tc.text, tc.except); got != tc.matches {
			t.Errorf("matches(%q, %q, %q) = %t", tc.pattern, tc.text, tc.except, got)
		}
		if got := begins(tc.pattern, tc.text, tc.except); got != tc.begins {
			t.Errorf("begins(%q, %q, %q) = %t", tc.pattern, tc.text, tc.except, got)
		}
	}
}
