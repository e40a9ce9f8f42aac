package config

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// section returns the schema of a struct.
func (s *specSchema) section(t reflect.Type) object {
	properties, section := object{}, strings.TrimSuffix(t.Name(), "Spec")
	for _, k := range SpecFields(t) {
		f, owner := k.Field, t.Name()
		if len(f.Index) > 1 {
			owner = t.FieldByIndex(f.Index[:len(f.Index)-1]).Type.Name() // an embedded struct
		}
		meaning := s.comments[owner+"."+f.Name]
		switch k.Form {
		case SpecSecret:
			properties[k.Key] = described(objectReference(object{"key": object{
				"type": "string", "minLength": 1, "maxLength": 253, "pattern": `^[-._a-zA-Z0-9]+$`,
				"description": fmt.Sprintf("Key in the Secret. Default: %s.", k.DefaultKey),
			}}), "Secret of the same namespace with this value. "+meaning)
		case SpecConfigMap:
			properties[k.Key] = described(objectReference(nil), fmt.Sprintf(
				"ConfigMap of the same namespace with texts for %s. Its keys are languages, such as fr, and for messages an identifier "+
					"and a language, such as goodbye.fr. A text in %[1]s takes precedence.", f.Tag.Get("yaml")))
		case SpecValue:
			schema, id := s.value(f.Type, f.Tag.Get("empty") != ""), section+"."+k.Key
			if rules, ok := keyRules()[id]; ok {
				s.used[id] = true
				merge(schema, rules)
			}
			properties[k.Key] = described(schema, withDefault(meaning, f.Tag.Get("default")))
		}
	}
	o := object{"type": "object", "properties": properties}
	if rules := sectionRules()[section]; rules != nil {
		s.used[section] = true
		o["x-kubernetes-validations"] = rules
	}
	return o
}

// withDefault adds the default of a key to its meaning.
func withDefault(meaning, fallback string) string {
	if fallback == "" || fallback == "none" || fallback == "required" {
		return meaning
	}
	return fmt.Sprintf("%s Default: %s.", meaning, fallback)
}

// objectReference returns the schema of a reference to an object of the same namespace. more are further properties.
func objectReference(more object) object {
	properties := object{"name": object{"type": "string", "minLength": 1, "maxLength": 253,
		"pattern":     `^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`,
		"description": "Name of the object, in the namespace of the resource."}}
	maps.Copy(properties, more)
	return object{"type": "object", "required": []string{"name"}, "properties": properties}
}

// merge adds keywords to a schema. Nested schemas are merged too.
func merge(schema, more object) {
	for keyword, v := range more {
		nested, isObject := v.(object)
		have, both := schema[keyword].(object)
		if isObject && both {
			merge(have, nested)
			continue
		}
		schema[keyword] = v
	}
}

// value returns the schema of a type.
func (s *specSchema) value(t reflect.Type, mayBeEmpty bool) object {
	switch {
	case yamlconf.IsScalar(t):
		o := scalarSchema(t)
		if o["type"] == "string" && o["enum"] == nil && o["pattern"] == nil && !mayBeEmpty {
			o["minLength"] = 1
		}
		return o
	case t == reflect.TypeFor[Attributes]():
		// Only the keys that a tenant can have.
		properties := object{}
		for _, name := range words(t.Key()) {
			if name != string(LDAPTenant) {
				properties[name] = object{"type": "string", "minLength": 1, "pattern": `^([A-Za-z][A-Za-z0-9-]*|[0-9]+(\.[0-9]+)+)$`,
					"description": "Attribute with this setting."}
			}
		}
		return object{"type": "object", "properties": properties}
	case t.Kind() == reflect.Slice:
		o := object{"type": "array", "items": s.value(t.Elem(), false), "x-kubernetes-list-type": "atomic"}
		if words(t.Elem()) != nil {
			o["x-kubernetes-list-type"] = "set"
		}
		return o
	case t.Kind() == reflect.Map:
		return object{"type": "object", "additionalProperties": s.value(t.Elem(), true)}
	case t.Kind() == reflect.Pointer:
		return s.value(t.Elem(), mayBeEmpty)
	}
	return s.section(t)
}

// scalarSchema returns the schema of a scalar.
func scalarSchema(t reflect.Type) object {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if all := words(t); all != nil {
		return object{"type": "string", "enum": all}
	}
	pattern := func(p string) object { return object{"type": "string", "pattern": p} }
	switch t {
	case reflect.TypeFor[i18n.Text](): // a string, or an object with plural forms
		return object{"x-kubernetes-preserve-unknown-fields": true}
	case reflect.TypeFor[time.Duration]():
		return pattern(`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`)
	case reflect.TypeFor[bytesize.Size]():
		return object{"x-kubernetes-int-or-string": true, "anyOf": []object{{"type": "integer"}, {"type": "string"}},
			"pattern": `^[0-9]+ *([TGMK]iB|[TGM]B|kB|B)?$`, "minimum": 0}
	case reflect.TypeFor[value.ClientCertificate]():
		return pattern(`^(sha256:[0-9A-Fa-f:]{64,95}|subject:.*=.*|email:.*@.*|dns:.+|uri:.+)$`)
	case reflect.TypeFor[value.Network]():
		return pattern(network)
	case reflect.TypeFor[value.Expiry]():
		return pattern(`^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2}))?$`)
	case reflect.TypeFor[language.Tag]():
		return pattern(languageTag)
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int:
		return object{"type": "integer", "format": "int64", "minimum": 0}
	}
	return object{"type": "string"}
}

// Patterns that several rules have.
const (
	withoutControls = `^[^\x00-\x1f\x7f-\x9f]*$`
	languageTag     = `^[A-Za-z0-9]{1,8}([-_][A-Za-z0-9]{1,8})*$`
	network         = `^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$`
	httpURL         = `^[hH][tT][tT][pP][sS]?://[^/?#@]+([/?#].*)?$`
	s3URL           = `^[hH][tT][tT][pP][sS]?://[^/?#@][^?@]*$`
	hostLetter      = `([A-Za-z0-9]|[^\x00-\x7f])`
	hostLabel       = hostLetter + `((` + hostLetter + `|-)*` + hostLetter + `)?`
	hostName        = `^(` + hostLabel + `([.]` + hostLabel + `)*[.]?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)$`
	tagText         = `[\p{L}\p{N}\p{Z}\t-\r\x{85}+=._:/@-]`
	arnText         = `([^:\s{}]|\{tenant\})`
)

// prefixPattern and the rules of prefixes allow what value.PrefixProblem allows. maxPrefixLength is in bytes there.
const maxPrefixLength = 512

// withPlaceholders matches texts in which each pair of braces is a placeholder of an object rule.
func withPlaceholders(other string) string {
	return `^` + other + `*(\{((` + strings.Join(Placeholders(), "|") + `)\}` + other + `*|[^{}]*))*$`
}

// rule returns a rule in CEL with the message for values that violate it.
func rule(expression, message string) object { return object{"rule": expression, "message": message} }

// directoryKeys is the rule for maps by absolute directory. instead is the alternative for /.
func directoryKeys(instead string) object {
	return rule(`self.all(k, k.startsWith('/') && !k.matches('//|/[.]{1,2}(/|$)|/$|[\\x00-\\x1f\\x7f-\\x{9f}]'))`,
		"must have absolute directories as keys, like /in; for /, use "+instead)
}

// prefixKey has the rules of a prefix of keys.
func prefixKey() object {
	return object{"maxLength": maxPrefixLength, "pattern": withoutControls, "x-kubernetes-validations": []object{
		rule(`!self.startsWith('/')`, "is not a prefix of keys: remove the slash at the beginning"),
		rule(`!self.contains('//')`, "is not a prefix of keys: remove one of two slashes in a row"),
		rule(`!self.matches('(^|/)[.]{1,2}(/|$)')`, "is not a prefix of keys: it must not contain . or .. as a segment"),
		rule(`!self.matches('(^|/)[.]babelftp(/|$)')`, "is not a prefix of keys: .babelftp is reserved for objects of babelftp"),
	}}
}

func bucketKey() object {
	return object{"minLength": 3, "maxLength": 63, "pattern": `^[a-z0-9][a-z0-9.-]*[a-z0-9]$`, "x-kubernetes-validations": []object{
		rule(`!self.contains('..')`, "is not a valid bucket name: remove one of two dots in a row"),
		rule(`!self.matches('^((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])([.]|$)){4}$')`,
			"is not a valid bucket name: it must not be an IP address"),
	}}
}

// permissionList allows no permission to change the password, because it is a permission of the user.
func filePermissions() []string { return yamlconf.EnumValues(FilePermissions()...) }

func pathPermissions() object {
	return object{
		"maxProperties":            64,
		"additionalProperties":     object{"items": object{"enum": filePermissions()}, "maxItems": len(filePermissions())},
		"x-kubernetes-validations": []object{directoryKeys("permissions")},
	}
}

func languageKeys(texts object) object {
	return object{"maxProperties": 100, "additionalProperties": texts, "x-kubernetes-validations": []object{
		rule(`self.all(k, k.matches('`+languageTag+`'))`, "must have language tags as keys, like en or pt-BR")}}
}

// greetings has the rules of texts by language. Their variables are checked by a rule instead of a pattern, because the
// API server shows the pattern.
func greetings() object {
	return languageKeys(object{"minLength": 1, "maxLength": 4096,
		"pattern": `^[^\x00-\t\v-\x1f\x7f-\x9f\x{2028}\x{2029}\x{61c}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]*$`,
		"x-kubernetes-validations": []object{
			rule(`self.matches('[^\\s]')`, "is empty: write a text or remove the language"),
			rule(`self.matches('^[^{]*([{]((User|Tenant|LastLogin|Quota)[}][^{]*|[^{}\\n]*(\\n[^{]*)?))*$')`,
				"unknown variable: write one of {User}, {Tenant}, {LastLogin}, {Quota}, or remove the braces"),
		}})
}

func tags(text string) object {
	return object{"maxProperties": maxObjectTags, "additionalProperties": object{"maxLength": 1024, "pattern": text},
		"x-kubernetes-validations": []object{tagKeys()}}
}

func tagKeys() object {
	return rule(`self.all(k, k.size() <= 128 && k.matches('^`+strings.ReplaceAll(tagText, `\`, `\\`)+
		`+$') && !k.lowerAscii().startsWith('aws:'))`,
		"must have keys of up to 128 letters, digits, spaces and + - = . _ : / @ without the prefix aws:")
}

// keyRules returns what check refuses in the value of a key, by STRUCT.KEY.
func keyRules() map[string]object {
	webURL := object{"maxLength": 2048, "pattern": httpURL}
	stringList := func(n int, item object) object { return object{"maxItems": n, "items": item} }
	networks := stringList(256, object{"maxLength": 64})
	fileNames := object{"maxItems": 256, "x-kubernetes-list-type": "set",
		"items": object{"minLength": 1, "maxLength": 255, "pattern": `^[^/\x00-\x1f\x7f-\x9f]+$`}}
	permissions := object{"maxItems": 7}
	someLanguages := object{"minItems": 1, "maxItems": 100, "x-kubernetes-list-type": "set"}
	directory := object{"maxLength": 1024, "pattern": `^/[^\x00-\x1f\x7f-\x9f]*$`}
	root := object{"maxLength": 1024, "pattern": `^/[^\x00-\x1f\x7f-\x9f]*$`, "x-kubernetes-validations": []object{
		rule(`!self.matches('(^|/)[.]babelftp(/|$)')`, ".babelftp is reserved for objects of babelftp")}}
	return map[string]object{
		"Tenant.hosts": {"maxItems": 64, "x-kubernetes-list-type": "set",
			"items": object{"minLength": 1, "maxLength": 255, "pattern": hostName}},
		"Tenant.bucket":           bucketKey(),
		"Tenant.prefix":           prefixKey(),
		"Tenant.languages":        someLanguages,
		"Tenant.greeting":         greetings(),
		"Tenant.welcome":          greetings(),
		"Tenant.messages":         {"maxProperties": 1000},
		"Tenant.permissions":      permissions,
		"Tenant.path_permissions": pathPermissions(),
		"Tenant.presign": {"maxLength": 32, "x-kubernetes-validations": []object{
			rule(`duration(self) == duration('0s') || duration(self) >= duration('1s') && duration(self) <= duration('168h')`,
				"is not between 1s and 168h, which S3 allows: correct it, or remove the key to disable links")}},
		"Tenant.versions_directory": {"maxLength": 255, "pattern": `^[^/\x00-\x1f\x7f-\x9f]+$`, "x-kubernetes-validations": []object{
			rule(`!(self in ['.', '..', '.babelftp'])`, "is not a directory name: write one without a slash, like .versions")}},
		"Tenant.folders": {"maxProperties": 64, "x-kubernetes-validations": []object{
			directoryKeys("bucket and prefix of the tenant")}},
		"Tenant.directory_encodings": {"maxProperties": 64, "x-kubernetes-validations": []object{
			directoryKeys("compatibility.charset")}},
		"Tenant.compatibility_by_network": {"maxProperties": 64, "x-kubernetes-validations": []object{
			rule(`self.all(k, k.matches('`+network+`'))`, "must have networks as keys, like 203.0.113.0/24")}},

		"Folder.bucket":      bucketKey(),
		"Folder.prefix":      prefixKey(),
		"Folder.permissions": {"minItems": 1, "maxItems": 6, "items": object{"enum": filePermissions()}},
		"Restore.days":       {"maximum": 2147483647},
		"FileRules.deny":     fileNames,

		"S3.endpoint":        {"maxLength": 2048, "pattern": s3URL},
		"S3.public_endpoint": {"maxLength": 2048, "pattern": s3URL},
		"AssumeRole.role_arn": {"maxLength": maxRoleARN,
			"pattern": `^arn:` + arnText + `+:` + arnText + `+:` + arnText + `*:` + arnText + `*:([^\s{}]|\{tenant\})+$`},
		"AssumeRole.external_id": {"maxLength": maxExternalID,
			"pattern": `^(([A-Za-z0-9_+=,.@:/-]|\{tenant\}){2,}|\{tenant\})$`},
		"AssumeRole.session_tags": {"maxProperties": maxSessionTags, "x-kubernetes-validations": []object{tagKeys()},
			"additionalProperties": object{"maxLength": 1024, "pattern": `^(` + tagText + `|\{tenant\})*$`}},

		"Objects.content_types": {"maxProperties": 100, "x-kubernetes-validations": []object{
			rule(`self.all(k, k.matches('^[.][^./]+$') && k == k.lowerAscii())`,
				"must have file name extensions in lower case as keys, like .dwg")},
			"additionalProperties": object{"pattern": mediaType}},
		"Objects.cache_control":          {"pattern": `^[ -~]+$`},
		"Objects.storage_class":          {"pattern": `^[A-Z0-9_]+$`},
		"Objects.tags":                   tags(`^` + tagText + `{0,256}$`),
		"Objects.rules":                  {"maxItems": 64},
		"ObjectRule.path":                {"maxLength": 1024, "pattern": `^/[^\x00-\x1f\x7f-\x9f]*$`},
		"ObjectRule.user":                {"maxLength": 255},
		"ObjectRule.set":                 {"minProperties": 1},
		"ObjectAttributes.storage_class": {"pattern": `^[A-Z0-9_]+$`},
		"ObjectAttributes.cache_control": {"pattern": `^[ -~]+$`},
		"ObjectAttributes.content_type":  {"pattern": mediaType},
		"ObjectAttributes.kms_key":       {"pattern": withPlaceholders(`[^{]`)},
		"ObjectAttributes.tags": tags(
			`^(` + tagText + `|\{(` + strings.Join(Placeholders(), "|") + `)\})*$`),
		"ObjectAttributes.metadata": {"maxProperties": 64, "x-kubernetes-validations": []object{
			rule(`self.all(k, k.matches('^[a-z0-9][a-z0-9_-]*$') && !k.startsWith('babelftp-') && k != 'mtime')`,
				"must have names of lower-case letters, digits, - and _; babelftp-* and mtime are reserved")},
			"additionalProperties": object{"maxLength": 2048, "pattern": withPlaceholders(`[^{\x00-\x1f\x7f-\x9f]`)}},
		"ObjectAttributes.key": {"maxLength": maxKey,
			"pattern": `^([^{}\x00-\x1f\x7f-\x9f]|\{(` + strings.Join(append(Placeholders(), Random), "|") + `)\})+$`,
			"x-kubernetes-validations": []object{
				rule(`!self.endsWith('/')`, "ends with a slash: add the name of the file, such as {name}"),
				rule(`!self.contains('..') && !self.contains('.babelftp')`, "must not contain .. or .babelftp"),
				rule(`!self.startsWith('/') && !self.contains('//')`, "is not valid: remove the slash at the beginning, or one of two in a row"),
				rule(`!self.matches('[^/]{129}')`, "has a segment that is too long: write at most 128 bytes between two slashes"),
			}},
		"Retention.days": {"maximum": maxRetention},

		"Receiver.url": webURL, "Webhook.url": webURL, "Webhook.skip": fileNames,
		"Inspect.clamd":      {"pattern": `^(unix:/.+|[tT][cC][pP]://[^/?#]*:[0-9]+([/?#].*)?)$`},
		"Inspect.icap":       {"pattern": `^[iI][cC][aA][pP]://[^/?#@]+([/?#].*)?$`},
		"Inspect.quarantine": {"maxLength": 1024, "pattern": `^[^/\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$`},
		"Hook.url":           webURL,
		"LDAP.urls": {"minItems": 1, "maxItems": 16, "items": object{"maxLength": 2048,
			"pattern": `^[lL][dD][aA][pP][sS]?://[^/?#@]+/?$`}},
		"LDAP.user_dn": {"maxLength": 2048, "pattern": `^[^=]+=\s*\{user\}\s*(,[^{}]*)?$`},
		"LDAP.filter": {"maxLength": 4096, "x-kubernetes-validations": []object{
			rule(`!self.contains('{user}')`, "must not contain {user}: the server adds the condition on the name")}},
		"Auth.cache": {"maxLength": 32, "x-kubernetes-validations": []object{
			rule(`duration(self) <= duration('10m')`, "is not between 0s and 10m0s")}},
		"Auth.groups":                   {"maxProperties": 256, "additionalProperties": object{"maxItems": 7}},
		"UserSettings.home":             directory,
		"UserSettings.root":             root,
		"UserSettings.permissions":      permissions,
		"UserSettings.path_permissions": pathPermissions(),

		"User.tenant": {"maxLength": maxTenantNameLength, "pattern": `^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`},
		"User.name":   {"maxLength": 255, "pattern": withoutControls},

		"User.certificates":     {"minItems": 1, "maxItems": 64, "items": object{"maxLength": 2048}},
		"User.home":             directory,
		"User.root":             root,
		"User.permissions":      permissions,
		"User.path_permissions": pathPermissions(),
		"Scope.allow":           networks,
		"Scope.deny":            networks,
	}
}

// mediaType matches the media types that mime.ParseMediaType accepts, and some more parameters.
const mediaType = "^\\s*[!#$%&'*+.^_`|{}~A-Za-z0-9-]+/[!#$%&'*+.^_`|{}~A-Za-z0-9-]+\\s*(;.*)?$"

// sectionRules returns what check refuses in the combination of the keys of a section, by the name of the struct.
func sectionRules() map[string][]object {
	somePermissions := rule(`!has(self.permissions) || size(self.permissions) > 0 || has(self.path_permissions) && size(self.path_permissions) > 0`,
		"permissions is empty: write at least one, or remove the key to allow all")
	const q = `(self.inspect.quarantine + '/').replace('//', '/')`
	const p = `(self.prefix + '/').replace('//', '/')`
	const roles = `(has(self.s3) && has(self.s3.assume_role) && has(self.s3.assume_role.role_arn) || has(self.folders) && ` +
		`self.folders.exists(f, has(self.folders[f].s3) && has(self.folders[f].s3.assume_role) && has(self.folders[f].s3.assume_role.role_arn)))`
	// serverCredentials returns the rule that each section s3 without credentials of its own meets a condition, in
	// which S3 stands for the section.
	serverCredentials := func(condition string) string {
		const own = `has(S3.secret_access_key_secret)`
		of := func(section string) string {
			return strings.ReplaceAll(`!has(S3) || `+own+` || `+condition, "S3", section)
		}
		return `has(self.s3) && has(self.s3.secret_access_key_secret) || (` + of("self.s3") + `) && (!has(self.folders) || ` +
			`self.folders.all(f, ` + of("self.folders[f].s3") + `))`
	}
	const customer = `has(self.objects) && has(self.objects.encryption) && self.objects.encryption == 'customer'`
	return map[string][]object{
		"Tenant": {
			somePermissions,
			rule(`!has(self.tls) || !has(self.tls.cert_secret) || has(self.hosts) && `+
				`self.hosts.exists(h, !h.contains(':') && !h.matches('^[0-9]{1,3}([.][0-9]{1,3}){3}$'))`,
				"tls requires hosts: write the names by which clients reach the tenant; TLS does not send addresses"),
			rule(`!has(self.versions_directory) || !has(self.folders) || `+
				`self.folders.all(f, f != '/' + self.versions_directory && !f.startsWith('/' + self.versions_directory + '/'))`,
				"versions_directory conflicts with a folder: write another name"),
			rule(`!has(self.presign) || duration(self.presign) <= duration('11h55m') || !`+roles,
				"presign is longer than the credentials of s3.assume_role are valid: write at most 11h55m"),
			rule(`!has(self.presign) || duration(self.presign) == duration('0s') || !(`+customer+`)`,
				"objects.encryption conflicts with presign, because readers of a link do not have the key: remove presign, or choose "+
					"another encryption"),
			rule(`!(`+customer+` && has(self.s3) && has(self.s3.endpoint) && self.s3.endpoint.lowerAscii().startsWith('http://'))`,
				"objects.encryption requires https, because the key is sent to S3: correct s3.endpoint, or choose another encryption"),
			rule(serverCredentials(`!has(S3.endpoint)`),
				"s3.endpoint requires access_key_id and secret_access_key_secret: the credentials of the server are not sent to other servers"),
			rule(serverCredentials(`!has(S3.assume_role) || !has(S3.assume_role.session_tags)`),
				"s3.assume_role.session_tags is not allowed with the credentials of the server, whose policies may trust it: remove it, or "+
					"set access_key_id and secret_access_key_secret"),
			rule(`!has(self.inspect) || !has(self.inspect.quarantine) || self.inspect.quarantine.matches('(^|/)[.]babelftp(/|$)') || `+
				`has(self.prefix) && !`+q+`.startsWith(`+p+`) && !`+p+`.startsWith(`+q+`)`,
				"inspect.quarantine is visible to users of the tenant: write another one, such as .babelftp/quarantine"),
		},
		"TenantTLS": {rule(`has(self.cert_secret) == has(self.key_secret)`, "cert_secret and key_secret must be set together")},
		"ClientCertificates": {rule(`!has(self.crl_secret) || has(self.ca_secret)`,
			"crl_secret requires ca_secret: name the Secret with the CAs that have signed the lists")},
		"Folder": {
			rule(`has(self.bucket) || has(self.prefix)`, "is empty: set bucket, or prefix for a part of the tenant's bucket"),
			rule(`!has(self.s3) || has(self.bucket)`, "bucket is missing: name the bucket at the S3 server of the folder"),
		},
		"Restore": {rule(`!has(self.tier) || has(self.days) && self.days > 0`,
			"days is missing: write for how many days a restored file can be read")},
		"S3": {
			rule(`!has(self.access_key_id) || !has(self.access_key_id_secret)`,
				"access_key_id and access_key_id_secret are both given: remove one"),
			rule(`(has(self.access_key_id) || has(self.access_key_id_secret)) == has(self.secret_access_key_secret)`,
				"the access key ID and secret_access_key_secret must be set together"),
		},
		"Compatibility": {
			rule(`!has(self.charset) || self.charset != 'raw' || !has(self.normalization) || self.normalization == 'none'`,
				"normalization conflicts with charset: raw, which keeps names as they are: remove it"),
			rule(`!has(self.charset) || self.charset != 'raw' || !has(self.backslash) || self.backslash != 'separator'`,
				"backslash conflicts with charset: raw, in which a backslash is not recognized: remove the key, or set another charset"),
		},
		"Objects": {
			rule(`!has(self.kms_key_id) || has(self.encryption) && self.encryption == 'kms'`,
				"kms_key_id works with encryption: kms only"),
			rule(`(has(self.encryption) && self.encryption == 'customer') == has(self.customer_key_secret)`,
				"encryption: customer and customer_key_secret must be set together"),
			rule(`!has(self.rules) || !has(self.encryption) || self.encryption != 'customer' || `+
				`self.rules.all(r, !has(r.set) || !has(r.set.kms_key))`,
				"kms_key in rules conflicts with encryption: customer: remove one of them"),
		},
		"ObjectRule": {rule(`has(self.set)`, "set has no attributes: write at least one, or remove the rule")},
		"Retention": {
			rule(`has(self.mode) || !has(self.days) || self.days == 0`, "mode is missing: write governance or compliance"),
			rule(`!has(self.mode) || has(self.days) && self.days > 0`, "days must be 1 to 36500"),
		},
		"Webhook": {
			rule(`has(self.url) == has(self.secret_secret)`, "url and secret_secret must be set together"),
			rule(`!has(self.skip) || size(self.skip) == 0 || has(self.url)`, "url is missing: write the address of the receiver"),
		},
		"Receiver": {rule(`has(self.url) == has(self.secret_secret)`, "url and secret_secret must be set together")},
		"Inspect": {
			rule(`[has(self.clamd), has(self.icap), has(self.hook) && has(self.hook.url)].filter(g, g).size() <= 1`,
				"has several inspectors: set only one of clamd, icap and hook"),
			rule(`has(self.clamd) || has(self.icap) || has(self.hook) && has(self.hook.url) || `+
				`!has(self.on_failure) && !has(self.timeout) && !has(self.quarantine)`,
				"has no inspector: set one of clamd, icap and hook"),
		},
		"Hook": {rule(`has(self.url) || !has(self.secret_secret)`, "url is missing: write the URL of the service")},
		"LDAP": {
			rule(`has(self.urls)`, "urls is missing: write the servers of the directory, like [ldaps://ldap.example.com]"),
			rule(`has(self.user_dn) || has(self.base_dn)`,
				"base_dn is missing: write the base DN of users, like ou=people,dc=example,dc=com, or the pattern user_dn"),
			rule(`!has(self.user_dn) || !has(self.base_dn) && !has(self.bind_dn)`,
				"user_dn conflicts with base_dn and bind_dn: remove them, or user_dn"),
			rule(`has(self.bind_dn) == has(self.bind_password_secret)`, "bind_dn and bind_password_secret must be set together"),
		},
		"Auth": {
			rule(`!(has(self.hook) && has(self.hook.url) && has(self.ldap))`, "ldap is not allowed together with hook: remove one of them"),
			rule(`!has(self.user) || has(self.ldap)`, "user applies to ldap only: the response of a hook has the settings"),
			rule(`!has(self.groups) || size(self.groups) == 0 || has(self.ldap) && has(self.ldap.attributes) && `+
				`has(self.ldap.attributes.groups)`,
				"groups requires the attribute with the groups of a user: set it in ldap.attributes, like groups: memberOf"),
			rule(`!has(self.ldap) || !has(self.ldap.attributes) || !has(self.ldap.attributes.groups) || `+
				`has(self.groups) && size(self.groups) > 0`,
				"ldap.attributes.groups requires groups with the permissions of the groups"),
			rule(`!has(self.groups) || size(self.groups) == 0 || !(has(self.user) && has(self.user.permissions)) && `+
				`!(has(self.ldap) && has(self.ldap.attributes) && has(self.ldap.attributes.permissions))`,
				"groups conflicts with permissions in user or ldap.attributes: remove one of them"),
		},
		"UserSettings": {somePermissions},
		"User": {
			somePermissions,
			rule(`has(self.password_hash_secret) || has(self.certificates) || has(self.disabled) && self.disabled`,
				"password_hash_secret is missing: name a Secret with what `babelftp hash-password` prints, or set disabled: true"),
			rule(`!has(self.files) || has(self.files.deny) && size(self.files.deny) > 0 || has(self.files.max_size)`,
				"files is empty and restricts nothing: write a value, or remove the key"),
		},
	}
}
