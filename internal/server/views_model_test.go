package server

import (
	"cmp"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/internal/config"
)

// A modelUser is a user of TestViews. Permissions are letters as in [granted].
type modelUser struct {
	name, tenant, root string
	rights             string
	rules              map[string]string // by directory, for it and everything below it
	overwrite          config.Overwrite
}

// viewUsers returns the users of TestViews.
func viewUsers() []modelUser {
	return []modelUser{
		{name: "admin", tenant: "acme", root: "/", rights: "lrwdnm"},
		{name: "partner", tenant: "acme", root: "/partner", rights: "lr", rules: map[string]string{
			"/in": "wnm", "/out": "lrwdnm", "/names": "lwn", "/blind": "rw", "/hidden": "", "/hidden/sub": "w",
			"/shared": "lrwdnm", "/archive": "lrwdnm",
		}},
		{name: "scanner", tenant: "acme", root: "/", rights: "wnm"},
		{name: "writer", tenant: "acme", root: "/partner", rights: "lwnm",
			rules: map[string]string{"/in": "wn", "/hidden": "wn", "/out": "lrw"}},
		{name: "keeper", tenant: "acme", root: "/partner/out", rights: "lrwnm", overwrite: config.DenyOverwrite,
			rules: map[string]string{"/sub": "dm"}},
		{name: "reader", tenant: "acme", root: "/", rights: "lr",
			rules: map[string]string{"/partner/hidden": "", "/partner/in": "", "/admin": "r"}},
		{name: "bob", tenant: "beta", root: "/", rights: "lrwdnm"},
	}
}

func viewUser(name string) modelUser {
	users := viewUsers()
	return users[slices.IndexFunc(users, func(u modelUser) bool { return u.name == name })]
}

// startOfViews returns the objects of each bucket at the beginning.
func startOfViews() map[string]string {
	objects := map[string]string{}
	for _, dir := range []string{
		"acme/", "acme/admin/", "acme/partner/", "acme/partner/in/", "acme/partner/out/", "acme/partner/names/",
		"acme/partner/blind/",
		"acme/partner/hidden/", "acme/partner/archive/", "acme/partner/out/sub/", "acme/partner/hidden/sub/", "acme2/",
		"acme2/sub/", "shared/", "shared/sub/",
	} {
		objects[dir] = ""
		if strings.Count(dir, "/") > 1 || dir == sharedPrefix {
			objects[dir+"a"] = "content of " + dir + "a"
		}
	}
	delete(objects, "acme/")
	delete(objects, "acme2/")
	delete(objects, "shared/")
	return objects
}

// may returns the permissions of the user at a pathname, in letters.
func (u modelUser) may(name string) (letters string) {
	longest := ""
	for dir := range u.rules {
		if below(name, dir) && len(dir) > len(longest) {
			longest = dir
		}
	}
	letters = u.rights
	if longest != "" {
		letters = u.rules[longest]
	}
	most := "lrwdnm"
	switch full := path.Join(u.root, name); {
	case u.tenant == "acme" && below(full, "/partner/shared"):
		most = "lrwd"
	case u.tenant == "acme" && below(full, "/partner/archive"):
		most = "lr"
	}
	return strings.Map(func(letter rune) rune {
		if strings.ContainsRune(most, letter) {
			return letter
		}
		return -1
	}, letters)
}

func (u modelUser) can(letter, name string) bool { return strings.Contains(u.may(name), letter) }

func below(name, dir string) bool {
	return name == dir || dir == "/" || strings.HasPrefix(name, dir+"/")
}

// sees reports whether a user may learn what exists at a pathname. Users with permission to list or read may, and so
// may those who learn it from replies, because they may delete it or are refused to overwrite it.
func (u modelUser) sees(name string) bool {
	return strings.ContainsAny(u.may(name), "lrd") || u.can("l", path.Dir(name)) ||
		u.overwrite == config.DenyOverwrite && u.can("w", name)
}

// places returns pathnames at and below name, one for each rule that can apply there.
func (u modelUser) places(name string) []string {
	all := []string{name, path.Join(name, "any")}
	for _, dir := range slices.Concat(
		slices.Collect(maps.Keys(u.rules)), []string{"/shared", "/archive", "/partner/shared", "/partner/archive"}) {
		if below(dir, name) {
			all = append(all, dir, path.Join(dir, "any"))
		}
	}
	return all
}

// everywhere reports whether a user has permissions at a pathname and everywhere below it.
func (u modelUser) everywhere(letters, name string) bool {
	for _, place := range u.places(name) {
		for _, letter := range strings.Split(letters, "") {
			if !u.can(letter, place) {
				return false
			}
		}
	}
	return true
}

// folder returns the folder with another bucket, as the user's tenant sees it.
func (u modelUser) folder() string {
	if u.tenant == "beta" {
		return "/shared"
	}
	return "/partner/shared"
}

func (u modelUser) prefix() string {
	if u.tenant == "beta" {
		return betaPrefix
	}
	return acmePrefix
}

// leads reports whether a pathname is the folder or a directory above it. Such a directory cannot be moved.
func (u modelUser) leads(name string) bool { return below(u.folder(), path.Join(u.root, name)) }

// key returns the key for a pathname of the user.
func (u modelUser) key(name string) string {
	full := path.Join(u.root, name)
	prefix, folder := u.prefix(), u.folder()
	if below(full, folder) && full != folder {
		return sharedPrefix + full[len(folder)+1:]
	}
	return strings.TrimSuffix(prefix+full[1:], "/")
}

// pathname returns the user's pathname for a key, and false if it is outside of the root.
func (u modelUser) pathname(key string) (string, bool) {
	prefix, folder := u.prefix(), u.folder()
	full := ""
	if rest, ok := strings.CutPrefix(key, sharedPrefix); ok {
		full = folder + "/" + rest
	} else if rest, ok := strings.CutPrefix(key+"/", prefix); ok {
		full = "/" + rest
	}
	full = path.Clean(full)
	if !below(full, u.root) {
		return "", false
	}
	return path.Join("/", strings.TrimPrefix(full, strings.TrimSuffix(u.root, "/"))), true
}

// A viewModel is the expected contents of a bucket, and the working directories of the users.
type viewModel struct {
	objects map[string]string
	cwd     map[string]string
	stored  map[string]map[string]bool // by user: files that the session stored and therefore knows
}

func newViewModel(objects map[string]string) *viewModel {
	return &viewModel{objects, map[string]string{}, map[string]map[string]bool{}}
}

// resolve returns the pathname for an argument in the form in which it would be created, and false if it is invalid.
func (m *viewModel) resolve(u modelUser, arg string) (string, bool) {
	if u.tenant == "beta" && !utf8.ValidString(arg) {
		arg, _ = charmap.KOI8R.NewDecoder().String(arg)
	}
	if !utf8.ValidString(arg) {
		return "", false
	}
	if !path.IsAbs(arg) {
		arg = path.Join(cmp.Or(m.cwd[u.name], "/"), arg)
	}
	return norm.NFC.String(path.Clean(arg)), true
}

func (m *viewModel) knows(u modelUser, name string) bool {
	return strings.ContainsAny(u.may(name), "lr") || u.can("l", path.Dir(name)) || m.stored[u.name][name]
}

func (m *viewModel) file(key string) bool { _, ok := m.objects[key]; return ok && key != "" }

func (m *viewModel) dir(key string) bool {
	return len(m.under(key)) > 0
}

func (m *viewModel) under(key string) (keys []string) {
	for other := range m.objects {
		if strings.HasPrefix(other, key+"/") {
			keys = append(keys, other)
		}
	}
	return keys
}

// inFile reports whether a file exists instead of a directory above a key.
func (m *viewModel) inFile(key string) bool {
	for dir := path.Dir(key); dir != "."; dir = path.Dir(dir) {
		if m.file(dir) {
			return true
		}
	}
	return false
}

// sight describes what an observer can see of another user's step.
type sight int

const (
	noneSeen sight = iota
	someSeen
	allSeen
)

func (m *viewModel) sight(observer, u modelUser, st viewStep) sight {
	if observer.name == u.name || !slices.Contains(
		[]string{"STOR", "APPE", "REST 2 STOR", "STOU", "DELE", "MKD", "MKDIR", "RMD", "RMDIR", "RNTO", "COPY", "CPTO",
			"MFMT"}, st.verb) {
		return allSeen
	}
	seen := map[bool]bool{}
	for _, arg := range []string{st.name, cmp.Or(st.second, st.name)} {
		name, ok := m.resolve(u, arg)
		if st.verb == "STOU" {
			name, ok = cmp.Or(m.cwd[u.name], "/")+"/new", true
		}
		if !ok {
			continue
		}
		key := u.key(name)
		own, inRoot := observer.pathname(key)
		if !inRoot {
			// A directory above the observer's root contains the whole root.
			if top := observer.key("/"); strings.HasPrefix(top+"/", key+"/") || observer.tenant == "acme" &&
				strings.HasPrefix("shared/", key+"/") {
				return someSeen
			}
			seen[false] = true
			continue
		}
		for _, place := range observer.places(own) {
			seen[observer.sees(place) || m.stored[observer.name][place]] = true
		}
		// An entry that the observer sees exists as long as it contains something.
		for dir := path.Dir(own); dir != "/"; dir = path.Dir(dir) {
			if observer.sees(dir) != observer.sees(own) && !m.file(observer.key(dir)+"/") {
				return someSeen
			}
		}
		for other := range m.stored[observer.name] {
			if below(other, own) || below(own, other) {
				seen[true] = true
			}
		}
	}
	switch {
	case seen[true] && seen[false]:
		return someSeen
	case seen[true]:
		return allSeen
	}
	return noneSeen
}

// obstructed reports whether a directory prevents a file with the same name, or a file prevents names below it. Most
// S3 servers refuse such files, so the user of a refused file must learn about it.
func (m *viewModel) obstructed(u modelUser, st viewStep) bool {
	arg := st.name
	switch st.verb {
	case "STOR", "APPE", "MKD", "MKDIR":
	case "RNTO", "COPY", "CPTO":
		name, _ := m.resolve(u, st.name)
		if arg = st.second; !m.file(u.key(name)) {
			return false
		}
	default:
		return false
	}
	name, _ := m.resolve(u, arg)
	return m.inFile(u.key(name)) || st.verb[0] != 'M' && m.dir(u.key(name))
}

// check compares the result of a step with the model, and applies the step to the model.
func (m *viewModel) check(u modelUser, st viewStep, r viewResult) error {
	if st.verb == "QUOTA" || st.verb == "PWD" {
		return nil
	}
	name, ok := m.resolve(u, st.name)
	second, ok2 := m.resolve(u, st.second)
	if st.verb == "STOU" {
		line := r.replies[0]
		name, ok = path.Join(cmp.Or(m.cwd[u.name], "/"), strings.TrimPrefix(line, "150 FILE: ")), true
	}
	if !ok || !ok2 || slices.ContainsFunc(strings.Split(name+second, "/"), func(s string) bool {
		return s == ".babelftp"
	}) {
		if r.ok() && st.verb != "STAT" && st.verb != "LIST" && st.verb != "NLST" && st.verb != "MLSD" {
			return fmt.Errorf("done with a name that nothing can have")
		}
		return nil
	}
	may, must := m.predict(u, st, name, second)
	switch {
	case r.ok() && !may:
		return fmt.Errorf("done, but %s may not", u.name)
	case !r.ok() && must:
		return fmt.Errorf("refused, but %s may", u.name)
	case !r.ok():
		return nil
	}
	return m.apply(u, st, name, second, r)
}

// predict reports whether the user has permission for a step, and whether the step must succeed.
func (m *viewModel) predict(u modelUser, st viewStep, name, second string) (may, must bool) {
	key := u.key(name)
	isFile, isDir, blocked := m.file(key), m.dir(key), m.inFile(key)
	plain := !strings.HasSuffix(st.name, "/") && name != "/" && !u.leads(name)
	fresh := plain && !isDir && !blocked && (!isFile || u.overwrite != config.DenyOverwrite)
	switch st.verb {
	case "RETR", "REST 2 RETR", "HASH", "XCRC", "PRESIGN":
		may = u.can("r", name)
		return may, may && isFile && !isDir && plain && len(m.objects[key]) >= 2
	case "STOR", "APPE", "STOU":
		may = u.can("w", name)
		return may, may && fresh
	case "REST 2 STOR":
		may = u.can("w", name) && m.knows(u, name)
		return may, may && fresh && isFile && len(m.objects[key]) >= 2
	case "DELE":
		may = u.can("d", name) && isFile
		return may, may && plain && !isDir
	case "RMD":
		may = u.can("d", name) && isDir
		return may, may && plain && m.file(key+"/") && len(m.under(key)) == 1 && !isFile
	case "RMDIR":
		may = u.everywhere("d", name)
		return may, may && plain && isDir && !isFile && m.knows(u, name)
	case "MKD", "MKDIR":
		may = u.can("m", name)
		return may, may && plain && !isFile && !isDir && !blocked && u.key(path.Dir(name)) != "" &&
			(st.verb == "MKD" || m.dir(u.key(path.Dir(name))) && m.knows(u, path.Dir(name)))
	case "SIZE", "MDTM":
		may = m.knows(u, name) && isFile
		return may, may && plain
	case "MLST", "URL":
		may = m.knows(u, name) || name == "/"
		return may, may && (isFile && plain || isDir)
	case "MFMT":
		may = m.knows(u, name) && u.can("w", name) && isFile
		return may, may && plain
	case "LIST", "NLST", "MLSD", "STAT":
		may = u.can("l", name) || m.knows(u, name) || u.can("l", path.Dir(name))
		return may, u.can("l", name) && isDir && !isFile
	case "CWD":
		for _, place := range u.places(name) {
			may = may || u.may(place) != ""
		}
		may = may || m.knows(u, name)
		return may, may && isDir && !isFile
	case "RNTO":
		may = m.knows(u, name) && u.can("n", name) && u.can("w", second) && (u.can("r", name) || !u.can("r", second)) &&
			(u.can("d", name) || !u.can("d", second))
		if isDir && !isFile {
			may = may && u.everywhere("n", name) && u.everywhere("w", second) && m.knows(u, second)
		}
		return may, may && isFile && !isDir && plain && m.free(u, second, st.second)
	case "COPY", "CPTO":
		may = m.knows(u, name) && u.can("r", name) && u.can("w", second)
		if isDir && !isFile {
			may = may && u.everywhere("r", name) && u.everywhere("w", second) && m.knows(u, second)
		}
		return may, may && isFile && !isDir && plain && m.free(u, second, st.second) && name != second
	}
	panic("a script has " + st.verb)
}

// free reports whether nothing prevents a file with this name.
func (m *viewModel) free(u modelUser, name, arg string) bool {
	key := u.key(name)
	return name != "/" && !u.leads(name) && !strings.HasSuffix(arg, "/") && !m.dir(key) && !m.inFile(key) &&
		(u.overwrite != config.DenyOverwrite || !m.file(key))
}

// apply applies a successful step to the model, and compares its result.
func (m *viewModel) apply(u modelUser, st viewStep, name, second string, r viewResult) error {
	key, to := u.key(name), u.key(second)
	content := m.objects[key]
	switch st.verb {
	case "RETR", "REST 2 RETR":
		if st.verb != "RETR" {
			content = content[min(2, len(content)):]
		}
		if r.data != content {
			return fmt.Errorf("downloaded %q, want %q", r.data, content)
		}
	case "SIZE":
		if want := fmt.Sprintf("213 %d", len(content)); r.replies[0] != want {
			return fmt.Errorf("want %s", want)
		}
	case "NLST":
		if want := m.names(u, name); m.dir(key) && !m.file(key) && ascii(st.name) && r.data != want(st.name) {
			return fmt.Errorf("lists %q, want %q", r.data, want(st.name))
		}
	case "STOR", "STOU":
		m.store(u, name, st.data)
	case "APPE":
		if !m.knows(u, name) { // it may contain bytes that the session did not store
			m.objects[key] += st.data
		} else {
			m.store(u, name, content+st.data)
		}
	case "REST 2 STOR":
		m.store(u, name, content[:2]+st.data+content[min(len(content), 2+len(st.data)):])
	case "DELE":
		delete(m.objects, key)
	case "RMD":
		delete(m.objects, key+"/")
	case "RMDIR":
		delete(m.objects, key)
		for _, key := range m.under(key) {
			delete(m.objects, key)
		}
	case "MKD":
		if !m.file(key) && !m.dir(key) && !m.inFile(key) {
			m.objects[key+"/"] = ""
		}
	case "MKDIR":
		made := map[string]string{}
		for dir := name; dir != "/" && !m.inFile(key) && !m.file(u.key(dir)) &&
			!m.dir(u.key(dir)); dir = path.Dir(dir) {
			made[u.key(dir)+"/"] = ""
		}
		maps.Copy(m.objects, made)
	case "CWD":
		m.cwd[u.name] = name
	case "RNTO", "COPY", "CPTO":
		m.move(u, st.verb, name, second, key, to)
	}
	return nil
}

func ascii(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > '~' })
}

func (m *viewModel) store(u modelUser, name, content string) {
	m.objects[u.key(name)] = content
	if m.stored[u.name] == nil {
		m.stored[u.name] = map[string]bool{}
	}
	m.stored[u.name][name] = true
}

// move moves or copies a file, or a directory if there is no file.
func (m *viewModel) move(u modelUser, verb, name, second, key, to string) {
	if key == to {
		return
	}
	from := []string{key}
	if !m.file(key) {
		from = m.under(key)
	}
	moved := map[string]string{}
	for _, old := range from {
		moved[to+strings.TrimPrefix(old, key)] = m.objects[old]
		if verb == "RNTO" {
			delete(m.objects, old)
		}
	}
	maps.Copy(m.objects, moved)
	if m.stored[u.name][name] && verb == "RNTO" {
		m.stored[u.name][second] = true
	}
}

// names returns the names in the NLST listing of a directory, relative to the argument of the client.
func (m *viewModel) names(u modelUser, name string) func(arg string) string {
	names := map[string]bool{}
	key := u.key(name)
	for _, other := range m.under(key) {
		rest := strings.TrimPrefix(other, key+"/")
		first, _, _ := strings.Cut(rest, "/")
		if first != "" {
			names[first] = true
		}
	}
	if folder := u.folder(); path.Dir(folder) == path.Join(u.root, name) {
		names[path.Base(folder)] = true
	}
	return func(arg string) string {
		text := ""
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if encoded, err := charmap.KOI8R.NewEncoder().String(name); u.tenant == "beta" && err == nil &&
				!utf8.ValidString(encoded) {
				name = encoded // otherwise it is ASCII, or the server shows it in UTF-8
			}
			text += arg + "/" + name + "\r\n"
		}
		return strings.ReplaceAll(text, "//", "/")
	}
}

// fill sets the objects of a bucket.
func (w *worlds) fill(world int, objects map[string]string) error {
	ctx, client, bucket := w.t.Context(), w.s.Client(), aws.String(w.buckets[world])
	for key := range w.stored[world] {
		if _, wanted := objects[key]; wanted {
			continue
		}
		if _, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: &key}); err != nil {
			return err
		}
	}
	for key, content := range objects {
		if stored, ok := w.stored[world][key]; ok && stored == content {
			continue
		}
		if _, err := client.PutObject(
			ctx, &s3.PutObjectInput{Bucket: bucket, Key: &key, Body: strings.NewReader(content)}); err != nil {
			return err
		}
	}
	w.stored[world] = maps.Clone(objects)
	return nil
}

// contents returns the objects of a bucket. Bytes that differ from the model are shown as their ETag.
func (w *worlds) contents(world int, want map[string]string) (map[string]string, error) {
	page, err := w.s.Client().ListObjectsV2(w.t.Context(), &s3.ListObjectsV2Input{Bucket: &w.buckets[world]})
	if err != nil {
		return nil, err
	}
	got := map[string]string{}
	for _, object := range page.Contents {
		key := *object.Key
		sum := md5.Sum([]byte(want[key]))
		if etag := strings.Trim(*object.ETag, `"`); etag != hex.EncodeToString(sum[:]) {
			got[key] = "ETag " + etag
		} else {
			got[key] = want[key]
		}
	}
	w.stored[world] = maps.Clone(got)
	return got, nil
}
