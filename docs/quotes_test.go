package docs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
)

const operations = "docs/guides/operations.md"

// A metric has labels, and what /metrics says about it.
type metric struct {
	labels []string
	help   string
}

// metrics returns the metrics in the table of the guide to operations, by their names. A test of internal/server
// holds it against the code.
func metrics(t *testing.T) map[string]metric {
	t.Helper()
	all := map[string]metric{}
	for _, l := range lines(t, operations) {
		cells := strings.Split(l.text, "|")
		if len(cells) != 5 || !strings.HasPrefix(cells[1], " `babelftp_") {
			continue
		}
		var m metric
		for _, label := range inlineCode.FindAllStringSubmatch(cells[2], -1) {
			m.labels = append(m.labels, label[1])
		}
		m.help = cells[3]
		name := strings.Trim(cells[1], " `")
		all[name] = m
		if strings.HasSuffix(name, "_seconds") && !strings.HasSuffix(name, "_timestamp_seconds") { // a histogram
			all[name+"_bucket"], all[name+"_count"], all[name+"_sum"] = metric{labels: append(m.labels, "le")}, m, m
		}
	}
	return all
}

var (
	selector = regexp.MustCompile(`\b(babelftp_[a-z0-9_]+)(?:\{([^{}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|=|!=|!~)\s*"([^"]*)"`)
	listed   = regexp.MustCompile(`\b(\w+) \(([^()]*)\)`)
)

// isLimit reports whether a text can be the value of a label limit. It is a key below limits of the server or of a
// tenant, or one of two other names.
func isLimit(text string) bool {
	s := decodeSchema(config.Schema())
	path := append([]string{"limits"}, strings.Split(text, ".")...)
	return s.has(path...) || s.has(append([]string{"tenants", "NAME"}, path...)...) || text == "passive.ports" ||
		text == "descriptors"
}

// wrongSelectors returns what no metric has: names, labels, and values of labels whose values the table lists.
func wrongSelectors(known map[string]metric, text string) []string {
	var wrong []string
	for _, s := range selector.FindAllStringSubmatch(text, -1) {
		m, ok := known[s[1]]
		if !ok {
			wrong = append(wrong, s[1])
			continue
		}
		for _, label := range matcher.FindAllStringSubmatch(s[2], -1) {
			name, value := label[1], label[2]
			if !slices.Contains(append(m.labels, "job", "pod", "instance"), name) {
				wrong = append(wrong, s[1]+" by "+name)
			}
			for v := range strings.SplitSeq(value, "|") {
				if name == "limit" && !isLimit(v) {
					wrong = append(wrong, s[1]+" with limit="+v)
				}
			}
			for _, l := range listed.FindAllStringSubmatch(m.help, -1) {
				// The list names all values where it has nothing but words.
				if words := strings.Split(l[2], ", "); l[1] == name && !slices.ContainsFunc(words, func(w string) bool {
					return strings.Contains(w, " ")
				}) {
					for v := range strings.SplitSeq(value, "|") {
						if !slices.Contains(words, v) {
							wrong = append(wrong, s[1]+" with "+name+"="+v)
						}
					}
				}
			}
		}
	}
	return wrong
}

// TestSelectors wants each metric that a page, an alert or the dashboard names to exist, with its labels.
func TestSelectors(t *testing.T) {
	known := metrics(t)
	found := 0
	for _, page := range append(pages(t), "deploy/babelftp/files/alerts.yaml", "deploy/babelftp/files/dashboard.json") {
		if page == "CHANGELOG.md" {
			continue // metrics may go
		}
		for _, l := range lines(t, page) {
			text := strings.ReplaceAll(l.text, `\"`, `"`) // of JSON
			found += len(selector.FindAllString(text, -1))
			for _, wrong := range wrongSelectors(known, text) {
				t.Errorf("%s:%d: there is no metric %s", page, l.number, wrong)
			}
		}
	}
	if found < 100 {
		t.Errorf("the pages name metrics %d times", found)
	}
}

// TestWrongSelectors shows what TestSelectors finds.
func TestWrongSelectors(t *testing.T) {
	known := metrics(t)
	for text, want := range map[string]string{
		`rate(babelftp_transfers_total{result="failed"}[5m])`:              "",
		`babelftp_s3_request_duration_seconds_bucket{le="1", job="ftp/b"}`: "",
		`babelftp_refusals_total{limit=~"sessions|descriptors"}`:           "",
		`babelftp_refusals_total{limit="per_user.transfers"}`:              "",
		`babelftp_refusals_total{limit=~"limits.sessions|descriptors"}`: "babelftp_refusals_total with " +
			"limit=limits.sessions",
		`babelftp_transfer_total`:                "babelftp_transfer_total",
		`babelftp_transfers_total{user="alice"}`: "babelftp_transfers_total by user",
		`babelftp_relays_total{result=~"unreachable|unmatching"}`: "babelftp_relays_total with " +
			"result=unmatching",
		`babelftp_sessions_bucket`: "babelftp_sessions_bucket",
		`babelftp_transfers_total{direction="upload", result="interrupted"}`: "babelftp_transfers_total with " +
			"result=interrupted",
		`babelftp_tls_certificate_expiry_timestamp_seconds_sum{tenant="acme"`: "babelftp_tls_certificate_expiry_timestamp_seconds_sum",
	} {
		if got := strings.Join(wrongSelectors(known, text), ", "); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// replies returns patterns of the sentences that clients read in English. A placeholder stands for any text.
func replies(t *testing.T) []*regexp.Regexp {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "locales", "en", "messages.gotext.json"))
	if err != nil {
		t.Fatal(err)
	}
	var catalogue struct {
		Messages []struct {
			Translation json.RawMessage `json:"translation"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(text, &catalogue); err != nil {
		t.Fatal(err)
	}
	var patterns []*regexp.Regexp
	add := func(sentence string) {
		quoted := placeholder.ReplaceAllString(regexp.QuoteMeta(sentence), ".+")
		patterns = append(patterns, regexp.MustCompile("^"+quoted+"$"))
	}
	for _, m := range catalogue.Messages {
		var sentence string
		var forms struct {
			Select struct {
				Cases map[string]struct {
					Msg string `json:"msg"`
				} `json:"cases"`
			} `json:"select"`
		}
		switch {
		case json.Unmarshal(m.Translation, &sentence) == nil:
			add(sentence)
		case json.Unmarshal(m.Translation, &forms) == nil:
			for _, form := range forms.Select.Cases {
				add(form.Msg)
			}
		}
	}
	return patterns
}

var (
	placeholder = regexp.MustCompile(`\\\{[A-Za-z]+\\\}`)
	// A quotedReply is a reply in code within a line, or a line of a block that a client has printed.
	quotedReply = regexp.MustCompile(
		"(?:`|^(?:< |\\S+Error: |ftplib\\.error_\\w+: )?)([1-5][0-9][0-9])[ -]([A-Z][^`]*[^`\\s])(?:`|$)")
)

// isReply reports whether the server can say the sentence, or one that begins with it where it ends in an ellipsis.
func isReply(known []*regexp.Regexp, sentence string) bool {
	return slices.ContainsFunc(known, func(p *regexp.Regexp) bool { return p.MatchString(sentence) })
}

// TestReplies wants each reply that a page quotes to stand in the English catalogue.
func TestReplies(t *testing.T) {
	known := replies(t)
	found := 0
	for _, page := range pages(t) {
		if !strings.HasPrefix(filepath.ToSlash(page), "docs/guides/") {
			continue
		}
		for _, l := range lines(t, page) {
			if l.fence != "" && l.fence != "text" && l.fence != "console" {
				continue
			}
			for _, m := range quotedReply.FindAllStringSubmatch(l.text, -1) {
				found++
				if !isReply(known, m[2]) {
					t.Errorf("%s:%d: no catalogue has %q", page, l.number, m[2])
				}
			}
		}
	}
	t.Logf("%d replies", found)
}
