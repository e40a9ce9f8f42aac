package linearizability

import (
	"testing"
	"time"
)

// until is long enough for any history of these tests.
const until = time.Minute

// at makes a command that takes from one moment to another.
func at(call, end int, c Command) Command {
	c.Call, c.Return = time.Duration(call), time.Duration(end)
	return c
}

// Commands and their replies.
func stor(name, data string, code int) Command {
	return Command{Verb: "STOR", Name: name, Data: data, Code: code}
}

// appe appends to a.
func appe(data string, code int) Command {
	return Command{Verb: "APPE", Name: "a", Data: data, Code: code}
}

// rest writes into a.
func rest(offset int64, data string, code int) Command {
	return Command{Verb: "REST", Name: "a", Offset: offset, Data: data, Code: code}
}

func dele(name string, code int) Command { return Command{Verb: "DELE", Name: name, Code: code} }

// rnto renames a.
func rnto(to string, code int) Command {
	return Command{Verb: "RNTO", Name: "a", To: to, Code: code}
}

func retr(name, got string) Command { return Command{Verb: "RETR", Name: name, Got: got, Code: 226} }

func size(name string, size int64) Command {
	return Command{Verb: "SIZE", Name: name, Size: size, Code: 213}
}

func missing(name string) Command { return Command{Verb: "SIZE", Name: name, Code: 550} }

func mlsd(listing map[string]int64) Command {
	return Command{Verb: "MLSD", Listing: listing, Code: 226}
}

// MKD and RMD of d.
func mkd(code int) Command { return Command{Verb: "MKD", Name: "d/", Code: code} }

func rmd(code int) Command { return Command{Verb: "RMD", Name: "d/", Code: code} }

// mlsdOf lists d.
func mlsdOf(listing map[string]int64, code int) Command {
	return Command{Verb: "MLSD", Name: "d/", Listing: listing, Code: code}
}

func settled(c Command) Command {
	c.Settled = true
	return c
}

// inTurn gives each command its own time.
func inTurn(commands ...Command) History {
	for i := range commands {
		commands[i] = at(10*i, 10*i+5, commands[i])
	}
	return commands
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const none = 0 // no reply
	blind := rnto("b", 250)
	blind.Blind = true
	noticed := blind
	noticed.Code = 451
	lateLook := blind
	lateLook.Looked = 7
	versions := Rules{Versions: true}
	made := map[string]int64{"d/": 0}
	mkdOfAnother := mkd(257)
	mkdOfAnother.Client = 1
	for _, tt := range []struct {
		name    string
		rules   Rules
		history History
		want    Verdict
	}{
		{"nothing", Rules{}, nil, Explained},
		{"read-your-write", Rules{}, inTurn(
			stor("a", "x", 226), retr("a", "x"), size("a", 1), mlsd(map[string]int64{"a": 1})), Explained},
		{"stale-read", Rules{}, inTurn(stor("a", "x", 226), stor("a", "y", 226), retr("a", "x")), Unexplained},
		{"stale-listing", Rules{}, inTurn(stor("a", "x", 226), mlsd(nil)), Unexplained},
		{"unknown-name-in-a-listing", Rules{}, inTurn(stor("a", "x", 226), mlsd(map[string]int64{"a": 1, "a.part": 1})),
			Unexplained},
		{"empty-is-not-missing", Rules{}, inTurn(stor("a", "", 226), missing("a")), Unexplained},
		{"missing-is-not-empty", Rules{}, inTurn(size("a", 0)), Unexplained},
		{"read-beside-a-write", Rules{},
			History{at(0, 9, stor("a", "x", 226)), at(1, 3, missing("a")), at(4, 8, size("a", 1))}, Explained},
		{"back-in-time-beside-a-write", Rules{},
			History{at(0, 9, stor("a", "x", 226)), at(1, 3, size("a", 1)), at(4, 8, missing("a"))}, Unexplained},
		{"mixed-bytes", Rules{}, inTurn(stor("a", "xx", 226), stor("a", "yy", 226), retr("a", "xy")), Unexplained},

		{"append-to-nothing", Rules{}, inTurn(appe("x", 226), appe("x", 226), retr("a", "xx")), Explained},
		{"two-equal-appends-one-lost", Rules{},
			History{at(0, 9, appe("x", 226)), at(0, 9, appe("x", 226)), at(20, 29, size("a", 1))}, Unexplained},
		{"two-equal-appends-one-refused", Rules{},
			History{at(0, 9, appe("x", 226)), at(0, 9, appe("x", 451)), at(20, 29, size("a", 1))}, Explained},
		{"append-done-twice", Rules{}, inTurn(stor("a", "b", 226), appe("b", 226), retr("a", "bbb")), Unexplained},
		{"append-seen-undone-and-done-again", Rules{}, append(History{at(1, 900, appe("b", 226))},
			at(0, 0, stor("a", "b", 226)), at(10, 11, size("a", 2)), at(20, 21, stor("a", "b", 226)),
			at(901, 902, size("a", 2))), Unexplained},
		{"append-not-seen-before", Rules{}, append(History{at(1, 900, appe("b", 226))},
			at(0, 0, stor("a", "b", 226)), at(20, 21, stor("a", "b", 226)), at(901, 902, size("a", 2))), Explained},

		{"rest", Rules{}, inTurn(stor("a", "xyz", 226), rest(1, "-", 226), retr("a", "x-z")), Explained},
		{"rest-beyond", Rules{}, inTurn(stor("a", "xyz", 226), rest(2, "-+", 226), retr("a", "xy-+")), Explained},
		{"rest-truncates", Rules{}, inTurn(stor("a", "xyz", 226), rest(1, "-", 226), retr("a", "x-")), Unexplained},
		{"rest-behind-the-end", Rules{}, inTurn(stor("a", "x", 226), rest(2, "y", 226)), Unexplained},
		{"rest-refused", Rules{}, inTurn(stor("a", "x", 226), rest(2, "y", 554), retr("a", "x")), Explained},
		{"rest-refused-without-reason", Rules{}, inTurn(stor("a", "x", 226), rest(1, "y", 554)), Unexplained},

		{"delete", Rules{}, inTurn(stor("a", "x", 226), dele("a", 250), missing("a"), dele("a", 550)), Explained},
		{"delete-of-nothing", Rules{}, inTurn(dele("a", 250)), Unexplained},
		{"delete-refused-without-reason", Rules{}, inTurn(stor("a", "x", 226), dele("a", 550)), Unexplained},
		{"delete-without-effect", Rules{}, inTurn(stor("a", "x", 226), dele("a", 250), size("a", 1)), Unexplained},
		{"deleted-by-two", Rules{}, History{at(0, 1, stor("a", "x", 226)), at(2, 9, dele("a", 250)),
			at(2, 9, dele("a", 250)), at(10, 11, missing("a"))}, Explained},
		{"deleted-twice-by-one", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 90, dele("a", 250)), at(3, 4, missing("a")),
			at(5, 6, stor("a", "y", 226)), at(91, 92, missing("a")),
		}, Unexplained},

		{"doubt-done", Rules{}, inTurn(stor("a", "x", 451), size("a", 1)), Explained},
		{"doubt-done-late", Rules{}, inTurn(stor("a", "x", none), missing("a"), size("a", 1)), Explained},
		{"settled", Rules{}, inTurn(stor("a", "x", 226), settled(appe("y", 451)), size("a", 1)), Explained},
		{"settled-and-done", Rules{}, inTurn(stor("a", "x", 226), settled(appe("y", 451)), size("a", 2)), Unexplained},
		{"settled-rename-copied", Rules{}, inTurn(
			stor("a", "x", 226), settled(rnto("b", 451)), mlsd(map[string]int64{"a": 1, "b": 1})), Explained},
		{"settled-rename-not-copied", Rules{}, inTurn(
			stor("a", "x", 226), settled(rnto("b", 451)), mlsd(map[string]int64{"a": 1})), Explained},
		{"settled-rename-copied-late", Rules{}, inTurn(
			stor("a", "x", 226), settled(rnto("b", 451)), missing("b"), size("b", 1)), Unexplained},
		{"settled-rename-deleted", Rules{}, inTurn(
			stor("a", "x", 226), settled(rnto("b", 451)), mlsd(map[string]int64{"b": 1})), Unexplained},
		{"settled-rename-of-nothing", Rules{}, inTurn(settled(rnto("b", 451)), mlsd(nil)), Explained},
		{"doubt-never-done", Rules{}, inTurn(stor("a", "x", none), missing("a")), Explained},
		{"doubt-done-twice", Rules{}, inTurn(
			stor("a", "x", none), size("a", 1), dele("a", 250), missing("a"), size("a", 1)), Unexplained},
		{"doubt-of-a-delete", Rules{}, inTurn(stor("a", "x", 226), dele("a", 426), size("a", 1), missing("a")),
			Explained},
		{"doubt-of-a-delete-that-deletes-twice", Rules{}, inTurn(
			stor("a", "x", 226), dele("a", 426), missing("a"), stor("a", "x", 226), missing("a")), Unexplained},
		{"refused-and-done", Rules{Deny: true},
			inTurn(stor("a", "x", 226), dele("a", 250), stor("a", "x", 553), size("a", 1)), Unexplained},
		{"refused-for-good-without-reason", Rules{}, History{at(0, 9, appe("x", 226)), at(0, 9, stor("a", "y", 550))},
			Unexplained},

		{"rename", Rules{}, inTurn(stor("a", "x", 226), rnto("b", 250), missing("a"), retr("b", "x")), Explained},
		{"rename-of-nothing", Rules{}, inTurn(rnto("b", 250)), Unexplained},
		{"rename-seen-half-way", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 9, rnto("b", 250)), at(3, 4, mlsd(map[string]int64{"a": 1, "b": 1})),
			at(10, 11, mlsd(map[string]int64{"b": 1})),
		}, Explained},
		{"rename-that-loses-the-file-half-way", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 9, rnto("b", 250)), at(3, 4, missing("a")), at(5, 6, missing("b")),
			at(10, 11, size("b", 1)),
		}, Unexplained},
		{"rename-leaves-what-came", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 9, rnto("b", 451)), at(3, 4, stor("a", "yy", 226)),
			at(10, 11, mlsd(map[string]int64{"a": 2, "b": 1})),
		}, Explained},
		{"rename-deletes-what-came", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 90, rnto("b", 250)), at(3, 4, retr("b", "x")),
			at(5, 6, stor("a", "yy", 226)), at(91, 92, missing("a")),
		}, Unexplained},
		{"rename-may-delete-what-came", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 90, blind), at(3, 4, retr("b", "x")), at(5, 6, stor("a", "yy", 226)),
			at(91, 92, missing("a")),
		}, Explained},
		{"rename-may-not-delete-what-came-before-its-look", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 90, lateLook), at(3, 4, retr("b", "x")), at(5, 6, stor("a", "yy", 226)),
			at(91, 92, missing("a")),
		}, Unexplained},
		{"rename-may-delete-what-came-after-its-look", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 90, lateLook), at(3, 4, retr("b", "x")), at(8, 9, stor("a", "yy", 226)),
			at(91, 92, missing("a")),
		}, Explained},
		{"rename-that-looks-late-beside-a-delete", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 90, lateLook), at(3, 4, retr("b", "x")), at(5, 6, dele("a", 250)),
			at(91, 92, missing("a")),
		}, Explained},
		{"rename-deletes-nothing-after-it-saw-nothing", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 90, blind), at(3, 4, retr("b", "x")), at(5, 6, dele("a", 250)),
			at(7, 8, missing("a")), at(9, 10, stor("a", "yy", 226)), at(11, 12, size("a", 2)),
			at(91, 92, missing("a")),
		}, Explained}, // it may have looked before
		{"rename-may-not-delete-a-version-that-came", versions, History{
			at(0, 1, stor("a", "x", 226)), at(2, 90, blind), at(3, 4, retr("b", "x")), at(5, 6, stor("a", "yy", 226)),
			at(91, 92, missing("a")),
		}, Unexplained},
		{"rename-brings-a-version-back", versions, History{
			at(0, 1, stor("a", "x", 226)), at(2, 90, noticed), at(3, 4, retr("b", "x")), at(5, 6, stor("a", "yy", 226)),
			at(7, 8, missing("a")), at(91, 92, retr("a", "yy")),
		}, Explained},
		{"rename-brings-back-what-another-has-deleted", versions, History{
			at(0, 1, stor("a", "x", 226)), at(2, 90, noticed), at(3, 4, stor("a", "yy", 226)), at(5, 6, missing("a")),
			at(7, 8, stor("a", "z", 226)), at(9, 10, dele("a", 250)), at(11, 12, retr("a", "yy")),
		}, Unexplained},
		{"store-older-than-an-append", versions, History{
			at(0, 1, stor("a", "x", 226)), at(2, 9, stor("a", "y", 226)), at(3, 8, appe("z", 226)),
			at(10, 11, retr("a", "xz")),
		}, Explained},
		{"store-older-than-an-append-without-versions", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 9, stor("a", "y", 226)), at(3, 8, appe("z", 226)),
			at(10, 11, retr("a", "xz")),
		}, Unexplained},
		{"store-that-ends-before-an-append-begins", versions, History{
			at(0, 1, stor("a", "x", 226)), at(2, 3, stor("a", "y", 226)), at(4, 8, appe("z", 226)),
			at(10, 11, retr("a", "xz")),
		}, Unexplained},
		{"store-seen-before-an-append", versions, History{
			at(0, 1, stor("a", "x", 226)), at(2, 9, stor("a", "y", 226)), at(3, 4, retr("a", "y")),
			at(5, 8, appe("z", 226)), at(10, 11, retr("a", "xz")),
		}, Unexplained},
		{"store-older-than-an-append-comes-later", versions, History{
			at(0, 1, stor("a", "x", 226)), at(2, 9, stor("a", "y", 226)), at(3, 8, appe("z", 226)),
			at(10, 11, retr("a", "xz")), at(12, 13, retr("a", "y")),
		}, Unexplained},
		{"store-lost-beside-another-store", versions, History{
			at(0, 1, stor("a", "x", 226)), at(2, 9, stor("a", "y", 226)), at(3, 8, stor("b", "z", 226)),
			at(10, 11, retr("a", "x")),
		}, Unexplained},
		{"rename-to-an-older-version-than-an-append", versions, History{
			at(0, 1, stor("a", "x", 226)), at(0, 1, stor("b", "y", 226)),
			at(2, 9, Command{Verb: "RNTO", Name: "b", To: "a", Code: 250}), at(3, 8, appe("z", 226)),
			at(10, 11, retr("a", "xz")), at(10, 11, missing("b")),
		}, Explained},
		{"rename-may-not-delete-twice", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 90, blind), at(3, 4, missing("a")), at(5, 6, stor("a", "yy", 226)),
			at(91, 92, missing("a")),
		}, Unexplained},
		{"rename-sees-equal-bytes-of-another", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 90, lateLook), at(3, 4, retr("b", "x")), at(5, 6, stor("a", "x", 226)),
			at(91, 92, missing("a")),
		}, Unexplained},
		{"rename-deletes-equal-bytes-of-another", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 90, rnto("b", 250)), at(3, 4, retr("b", "x")),
			at(5, 6, stor("a", "x", 226)), at(91, 92, missing("a")),
		}, Explained},
		{"rename-beside-a-delete", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 9, rnto("b", 250)), at(2, 9, dele("a", 250)),
			at(10, 11, mlsd(map[string]int64{"b": 1})),
		}, Explained},
		{"rename-refused-after-its-effect", Rules{},
			inTurn(stor("a", "x", 226), dele("b", 550), rnto("b", 550), mlsd(map[string]int64{"b": 1})), Unexplained},
		{"rename-in-doubt-copied", Rules{},
			inTurn(stor("a", "x", 226), rnto("b", none), mlsd(map[string]int64{"a": 1, "b": 1})), Explained},
		{"rename-in-doubt-deleted-only", Rules{},
			inTurn(stor("a", "x", 226), rnto("b", none), missing("a"), missing("b")), Unexplained},
		{"two-renames-of-one-file", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 9, rnto("b", 250)), at(2, 9, rnto("c", 250)),
			at(10, 11, mlsd(map[string]int64{"b": 1, "c": 1})),
		}, Explained},

		{"deny", Rules{Deny: true}, inTurn(stor("a", "x", 226), stor("a", "y", 553), retr("a", "x")), Explained},
		{"deny-refused-without-reason", Rules{Deny: true}, inTurn(stor("a", "x", 553)), Unexplained},
		{"deny-append-refused", Rules{Deny: true},
			inTurn(stor("a", "x", 226), appe("y", 550), retr("a", "x")), Explained},
		{"deny-append-refused-without-reason", Rules{Deny: true}, inTurn(appe("y", 550)), Unexplained},
		{"deny-one-winner", Rules{Deny: true},
			History{at(0, 9, stor("a", "lock", 226)), at(0, 9, stor("a", "lock", 553)), at(10, 11, size("a", 4))},
			Explained},
		{"deny-two-winners", Rules{Deny: true},
			History{at(0, 9, stor("a", "lock", 226)), at(0, 9, stor("a", "lock", 226))}, Unexplained},
		{"deny-doubt-never-replaces", Rules{Deny: true},
			inTurn(stor("a", "x", 226), stor("a", "yy", none), size("a", 2)), Unexplained},
		{"deny-rename-refused", Rules{Deny: true},
			inTurn(stor("a", "x", 226), stor("b", "x", 226), rnto("b", 553), retr("a", "x")), Explained},
		{"deny-rename-replaces", Rules{Deny: true}, inTurn(stor("a", "x", 226), stor("b", "x", 226), rnto("b", 250)),
			Unexplained},

		{"directory", Rules{}, inTurn(
			mkd(257), mlsd(made), mlsdOf(nil, 226), mkd(550), rmd(250), mlsd(nil), mlsdOf(nil, 550),
			rmd(550)), Explained},
		{"directory-not-made", Rules{}, inTurn(mkd(257), mlsd(nil)), Unexplained},
		{"directory-made-twice", Rules{}, History{at(0, 9, mkd(257)), at(0, 9, mkd(257))}, Unexplained},
		{"directory-refused-without-reason", Rules{}, inTurn(mkd(550)), Unexplained},
		{"directory-of-a-file", Rules{},
			inTurn(stor("d/x", "x", 226), mkd(550), mlsd(made), mlsdOf(map[string]int64{"d/x": 1}, 226), rmd(550)),
			Explained},
		{"directory-made-beside-its-file", Rules{},
			History{at(0, 9, mkd(257)), at(1, 5, stor("d/x", "x", 226)), at(10, 11, mlsd(made))}, Explained},
		{"directory-goes-with-its-file", Rules{},
			inTurn(stor("d/x", "x", 226), dele("d/x", 250), mlsd(nil), mlsdOf(nil, 550)), Explained},
		{"directory-shows-without-a-file", Rules{}, inTurn(stor("d/x", "x", 226), dele("d/x", 250), mlsd(made)),
			Unexplained},
		{"directory-stays-without-its-file", Rules{},
			inTurn(mkd(257), stor("d/x", "x", 226), dele("d/x", 250), mlsd(made)), Explained},
		{"directory-made-in-doubt", Rules{}, inTurn(mkd(none), mlsd(nil), mlsd(made)), Explained},
		{"directory-removed-while-full", Rules{}, inTurn(mkd(257), stor("d/x", "x", 226), rmd(250)), Unexplained},
		{"directory-not-removed-while-empty", Rules{}, inTurn(mkd(257), rmd(550)), Unexplained},
		{"directory-not-removed", Rules{}, inTurn(mkd(257), rmd(250), mlsd(made)), Unexplained},
		{"directory-removed-beside-a-store", Rules{}, History{
			at(0, 1, mkd(257)), at(2, 9, rmd(250)), at(3, 4, stor("d/x", "x", 226)), at(10, 11, mlsd(made)),
			at(12, 13, dele("d/x", 250)), at(14, 15, mlsd(nil)),
		}, Explained},
		{"directory-removed-twice-by-one", Rules{}, History{
			at(0, 1, mkd(257)), at(2, 90, rmd(250)), at(3, 4, mlsd(nil)), at(5, 6, mkd(257)), at(91, 92, mlsd(nil)),
		}, Unexplained},
		{"directory-removed-beside-one-that-makes-it", Rules{},
			History{at(0, 9, rmd(250)), at(1, 8, mkdOfAnother), at(10, 11, mlsd(made))}, Explained},
		{"directory-removed-by-two", Rules{},
			History{at(0, 1, mkd(257)), at(2, 9, rmd(250)), at(2, 9, rmd(250)), at(10, 11, mlsd(nil))}, Explained},
		{"directory-unknown", Rules{}, inTurn(rmd(250)), Unexplained},
		{"directory-that-vanished", Rules{}, inTurn(stor("d/x", "x", 226), dele("d/x", 250), rmd(250), rmd(550)),
			Explained},
		{"directory-that-vanished-removed-twice", Rules{},
			inTurn(stor("d/x", "x", 226), dele("d/x", 250), rmd(250), rmd(250)), Unexplained},
		{"directory-that-vanished-twice", Rules{}, inTurn(
			stor("d/x", "x", 226), dele("d/x", 250), rmd(250), stor("d/x", "x", 226), dele("d/x", 250), rmd(250)),
			Explained},
		{"directory-in-doubt-removed-twice", Rules{}, inTurn(mkd(257), rmd(none), mlsd(nil), mkd(257), mlsd(nil)),
			Unexplained},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.history.markSeen()
			if got := tt.rules.Check(tt.history, until); got != tt.want {
				t.Errorf("%s, want %s:\n%v", got, tt.want, tt.history)
			}
		})
	}
}

// A refusal needs a change by another client that took place meanwhile.
func TestGroundless(t *testing.T) {
	t.Parallel()
	other := stor("a", "y", 226)
	other.Client = 1
	refused := stor("a", "x", 451)
	for _, tt := range []struct {
		name    string
		history History
		want    int
	}{
		{"nothing", inTurn(stor("a", "x", 226), retr("a", "x")), 0},
		{"alone", inTurn(refused), 1},
		{"after-another", inTurn(other, refused), 1},
		{"beside-another", History{at(0, 9, other), at(5, 15, refused)}, 0},
		{"beside-another-name", History{at(0, 9, Command{Client: 1, Verb: "STOR", Name: "b", Code: 226}),
			at(5, 15, refused)}, 1},
		{"beside-a-read", History{at(0, 9, Command{Client: 1, Verb: "SIZE", Name: "a", Code: 213}), at(5, 15, refused)},
			1},
		{"beside-another-refusal", History{at(0, 9, Command{Client: 1, Verb: "APPE", Name: "a", Code: 451}),
			at(5, 15, refused)}, 2},
		{"beside-the-opposite-rename", History{at(0, 9, Command{Client: 1, Verb: "RNTO", Name: "b", To: "a", Code: 451}),
			at(5, 15, rnto("b", 451))}, 0},
		{"beside-another-rename-of-the-same-file", History{
			at(0, 9, Command{Client: 1, Verb: "RNTO", Name: "a", To: "c", Code: 451}), at(5, 15, rnto("b", 451)),
		}, 2},
		{"target-of-a-rename", History{at(0, 9, Command{Client: 1, Verb: "STOR", Name: "b", Code: 226}),
			at(5, 15, rnto("b", 451))}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.history.Groundless(); len(got) != tt.want {
				t.Errorf("%d are groundless, want %d:\n%v", len(got), tt.want, got)
			}
		})
	}
}

// Where no other reply is suspect than the last one, a shrunk history keeps what was stored.
func TestShrinkKeepsWhatWasStored(t *testing.T) {
	t.Parallel()
	h := inTurn(stor("a", "x", 226), size("a", 1), size("a", 2), dele("a", 250))
	want := History{h[0], h[2]}.String()
	if got := (Rules{}).Shrink(h, until).String(); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
