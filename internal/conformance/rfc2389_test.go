package conformance_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Section 3.1: FEAT takes no argument. A single SP does not count as one.
func TestFEATTakesNoArgument(t *testing.T) {
	c := newSite(t, settings{}).connect(t)
	for _, line := range []string{"FEAT x", "FEAT MLST"} {
		c.want("501 ", line)
	}
	for _, line := range []string{"FEAT", "feat", "Feat", "FEAT "} {
		c.want("211-", line)
	}
}

// Section 3.2: the format of FEAT lines, in every language, before and after login, with and without TLS.
func TestFormOfFEAT(t *testing.T) {
	s := newSite(t, settings{})
	listing := regexp.MustCompile(`^211-[^\r\n]*\r\n( [!-~]+( [\t -~]+)?\r\n)+211 End$`)
	check := func(c *client) {
		c.t.Helper()
		if r := c.send("FEAT"); !listing.MatchString(r) {
			c.t.Errorf("FEAT: %q", r)
		}
	}
	s.inEachLanguage(t, func(_ *testing.T, c *client) {
		check(c)
		c.login()
		check(c)
	})
	c := s.connect(t)
	check(c)
	c.startTLS(s, "")
	check(c)
}

// Section 3.2: each feature has its own line in capitals. FEAT and OPTS have none.
func TestFeaturesAreListedOnce(t *testing.T) {
	s := newSite(t, settings{})
	features := s.connect(t).features()
	for _, want := range []string{"UTF8", "HOST", "MDTM", "SIZE", "REST STREAM", "TVFS", "MFMT", "MFF Modify;"} {
		if !slices.Contains(features, want) {
			t.Errorf("FEAT lacks %q", want)
		}
	}
	var labels []string
	for _, f := range features {
		label, _, _ := strings.Cut(f, " ")
		if label == "AUTH" || label == "SITE" { // one line for each mechanism and each subcommand
			label = f
		}
		if label != strings.ToUpper(label) {
			t.Errorf("%q is not in upper case", f)
		}
		labels = append(labels, label)
	}
	slices.Sort(labels)
	if twice := len(labels) - len(slices.Compact(slices.Clone(labels))); twice > 0 {
		t.Errorf("%d duplicate labels: %q", twice, labels)
	}
	for _, label := range []string{"FEAT", "OPTS", "MLSD", "RETR", "STOR"} {
		if slices.Contains(labels, label) {
			t.Errorf("FEAT has %s", label)
		}
	}
}

// Section 3.2: FEAT names exactly the extensions that the server supports.
func TestFEATListsImplementedFeatures(t *testing.T) {
	s := newSite(t, settings{})
	known := map[string]string{ // beginning of the feature line by command
		"AUTH TLS": "AUTH TLS", "PBSZ 0": "PBSZ", "PROT P": "PROT", "CLNT test": "CLNT",
		"EPRT |1|127.0.0.1|2000|": "EPRT", "EPSV": "EPSV",
		"HOST ftp.acme.example": "HOST", "LANG": "LANG", "MDTM f": "MDTM", "MFMT 20260101000000 f": "MFMT",
		"MFCT 20260101000000 f":        "MFCT",
		"MFF Modify=20260101000000; f": "MFF", "MLST": "MLST", "MLSD": "MLST", "REST 1": "REST STREAM",
		"SIZE f": "SIZE", "OPTS UTF8 ON": "UTF8",
		"HASH f": "HASH", "RANG 0 1": "RANG", "COMB a b": "COMB", "AVBL": "AVBL", "CSID Name=x;": "CSID",
		"MD5 f": "MD5", "XMD5 f": "XMD5", "XCRC f": "XCRC",
		"XSHA f": "XSHA", "XSHA1 f": "XSHA1", "XSHA256 f": "XSHA256", "XSHA512 f": "XSHA512", "MODE Z": "MODE Z",
		"THMB x": "THMB", "DSIZ": "DSIZ",
		"RMDA d": "RMDA", "ESTP": "ESTP", "ESTA": "ESTA", "LPSV": "LPSV", "LPRT x": "LPRT", "SPSV": "SPSV",
		"ADAT x": "ADAT", "MIC x": "MIC",
	}
	features := s.connect(t).features()
	for command, label := range known {
		t.Run(strings.ReplaceAll(command, " ", "_"), func(t *testing.T) {
			c := s.connect(t)
			if label != "HOST" && label != "AUTH TLS" {
				c.login()
			}
			r := c.send(command)
			there := !strings.HasPrefix(r, "500") && !strings.HasPrefix(r, "502") && !strings.HasPrefix(r, "504")
			listed := slices.ContainsFunc(features, func(f string) bool {
				return f == label || strings.HasPrefix(f, label+" ")
			})
			if there != listed {
				t.Errorf("%q: got %q, although FEAT has %q: %t", command, r, label, listed)
			}
		})
	}
}

// Section 4: OPTS works before login too. It returns 200 for known options and 501 for all others.
func TestOPTS(t *testing.T) {
	s := newSite(t, settings{})
	for _, tt := range []struct{ name, line, want string }{
		{"utf8-on", "OPTS UTF8 ON", "200 "},
		{"utf8-in-any-case", "opts utf8 on", "200 "},
		{"utf8-alone", "OPTS UTF8", "200 "},
		{"utf8-unknown-value", "OPTS UTF8 PERHAPS", "501 "},
		{"mlst", "OPTS MLST type;", "200 MLST OPTS type;"},
		{"mlst-in-any-case", "oPtS mLsT TYPE;", "200 MLST OPTS type;"},
		{"nothing", "OPTS", "501 "},
		{"empty", "OPTS ", "501 "},
		{"unknown-command", "OPTS FOO", "501 "},
		{"unknown-command-and-options", "OPTS FOO x y", "501 "},
		{"command-without-options", "OPTS RETR x", "501 "},
		{"feat", "OPTS FEAT", "501 "},
		{"opts", "OPTS OPTS", "501 "},
		{"mlsd", "OPTS MLSD type;", "501 "},
		{"tvfs", "OPTS TVFS", "501 "},
		{"two-spaces", "OPTS  MLST type;", "501 "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := s.connect(t)
			c.want(tt.want, tt.line)
			c.login()
			c.want(tt.want, tt.line)
		})
	}
}

// OPTS UTF8 is not defined by an RFC, but clients send it. Names are UTF-8 with and without it.
func TestOPTSUTF8(t *testing.T) {
	c := newSite(t, settings{}).login(t)
	c.Store("été", "x")
	c.want("200 ", "OPTS UTF8 ON")
	c.want("213 1", "SIZE été")
	if got := c.names("MLSD"); !slices.Equal(got, []string{"été"}) {
		t.Errorf("MLSD: %q", got)
	}
	if r := c.send("OPTS UTF8 OFF"); !strings.HasPrefix(r, "504 ") && !strings.HasPrefix(r, "501 ") {
		t.Errorf("OPTS UTF8 OFF: got %q, although names stay UTF-8", r)
	}
	c.want("213 1", "SIZE été")
}
