package linearizability

import (
	"testing"
	"time"
)

// until is long enough to check any history in these tests.
const until = time.Minute

// at sets the times of a command.
func at(call, end int, c Command) Command {
	c.Call, c.Return = time.Duration(call), time.Duration(end)
	return c
}

func stor(name, data string, code int) Command {
	return Command{Verb: "STOR", Name: name, Data: data, Code: code}
}

// appe appends to file a.
func appe(data string, code int) Command {
	return Command{Verb: "APPE", Name: "a", Data: data, Code: code}
}

// rest writes into file a.
func rest(offset int64, data string, code int) Command {
	return Command{Verb: "REST", Name: "a", Offset: offset, Data: data, Code: code}
}

func dele(name string, code int) Command { return Command{Verb: "DELE", Name: name, Code: code} }

// rnto renames file a.
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

func mkd(code int) Command { return Command{Verb: "MKD", Name: "d/", Code: code} }

func rmd(code int) Command { return Command{Verb: "RMD", Name: "d/", Code: code} }

// mlsdOf lists directory d.
func mlsdOf(listing map[string]int64, code int) Command {
	return Command{Verb: "MLSD", Name: "d/", Listing: listing, Code: code}
}

func settled(c Command) Command {
	c.Settled = true
	return c
}

// inTurn makes commands run one after another.
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
	lateCheck := blind
	lateCheck.CheckedFrom = 7
	versions := Rules{Versions: true}
	made := map[string]int64{"d/": 0}
	mkdOfAnother := mkd(257)
	mkdOfAnother.Client = 1
	// On MinIO the rename deleted the bytes that the second APPE had added.
	deletedUnnoticed := History{
		at(0, 6, stor("a", "x", 226)), at(73, 85, appe("b", 226)), at(90, 749, blind), at(94, 101, appe("b", 226)),
		at(108, 113, missing("a")), at(116, 119, size("b", 2)),
	}
	// MinIO stored "v" as an older version than the append, whose PUT ended 40 ms earlier.
	older := History{
		at(0, 3, stor("a", "u", 226)), at(23, 82, stor("a", "v", 226)), at(23, 37, appe("w", 226)),
		at(97, 99, retr("a", "uw")),
	}
	// MinIO stored "y" below the delete marker of a rename.
	covered := func(call int, after ...Command) History {
		h := History{at(0, 3, stor("a", "x", 226)), at(10, 30, rnto("b", 250)), at(call, 40, stor("a", "y", 226)),
			at(41, 42, retr("b", "x"))}
		for i, c := range after {
			h = append(h, at(50+10*i, 51+10*i, c))
		}
		return h
	}
	// MinIO lists a file as a directory while it deletes the file.
	ghost := func(call int) History {
		return History{
			at(0, 3, stor("a", "x", 226)), at(10, 14, dele("a", 250)),
			at(call, call+2, mlsd(map[string]int64{"a/": 0})), at(18, 22, missing("a")),
		}
	}
	for _, tt := range []struct {
		name    string
		rules   Rules
		history History
		want    Verdict
	}{
		{"read-your-write", Rules{}, inTurn(
			stor("a", "x", 226), retr("a", "x"), size("a", 1), mlsd(map[string]int64{"a": 1})), Explained},
		{"stale-read", Rules{}, inTurn(stor("a", "x", 226), stor("a", "y", 226), retr("a", "x")), Unexplained},
		{"missing-is-not-empty", Rules{}, inTurn(size("a", 0)), Unexplained},
		{"mixed-bytes", Rules{}, inTurn(stor("a", "xx", 226), stor("a", "yy", 226), retr("a", "xy")), Unexplained},

		{"append-done-twice", Rules{}, inTurn(stor("a", "b", 226), appe("b", 226), retr("a", "bbb")), Unexplained},

		{"rest-behind-the-end", Rules{}, inTurn(stor("a", "x", 226), rest(2, "y", 226)), Unexplained},
		{"rest-refused", Rules{}, inTurn(stor("a", "x", 226), rest(2, "y", 554), retr("a", "x")), Explained},
		{"rest-refused-without-reason", Rules{}, inTurn(stor("a", "x", 226), rest(1, "y", 554)), Unexplained},

		{"delete", Rules{}, inTurn(stor("a", "x", 226), dele("a", 250), missing("a"), dele("a", 550)), Explained},
		{"deleted-twice-by-one", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 90, dele("a", 250)), at(3, 4, missing("a")),
			at(5, 6, stor("a", "y", 226)), at(91, 92, missing("a")),
		}, Unexplained},

		{"settled", Rules{}, inTurn(stor("a", "x", 226), settled(appe("y", 451)), size("a", 1)), Explained},
		{"settled-rename-copied", Rules{}, inTurn(
			stor("a", "x", 226), settled(rnto("b", 451)), mlsd(map[string]int64{"a": 1, "b": 1})), Explained},
		{"settled-rename-not-copied", Rules{}, inTurn(
			stor("a", "x", 226), settled(rnto("b", 451)), mlsd(map[string]int64{"a": 1})), Explained},
		{"settled-rename-copied-late", Rules{}, inTurn(
			stor("a", "x", 226), settled(rnto("b", 451)), missing("b"), size("b", 1)), Unexplained},
		{"settled-rename-of-nothing", Rules{}, inTurn(settled(rnto("b", 451)), mlsd(nil)), Explained},
		{"doubt-done-twice", Rules{}, inTurn(
			stor("a", "x", none), size("a", 1), dele("a", 250), missing("a"), size("a", 1)), Unexplained},
		{"doubt-of-a-delete", Rules{}, inTurn(stor("a", "x", 226), dele("a", 426), size("a", 1), missing("a")),
			Explained},
		{"refused-permanently-without-reason", Rules{}, History{at(0, 9, appe("x", 226)), at(0, 9, stor("a", "y", 550))},
			Unexplained},

		{"rename", Rules{}, inTurn(stor("a", "x", 226), rnto("b", 250), missing("a"), retr("b", "x")), Explained},
		{"rename-of-nothing", Rules{}, inTurn(rnto("b", 250)), Unexplained},
		{"rename-that-loses-the-file-half-way", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 9, rnto("b", 250)), at(3, 4, missing("a")), at(5, 6, missing("b")),
			at(10, 11, size("b", 1)),
		}, Unexplained},
		{"rename-deletes-what-came", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 90, rnto("b", 250)), at(3, 4, retr("b", "x")),
			at(5, 6, stor("a", "yy", 226)), at(91, 92, missing("a")),
		}, Unexplained},
		{"rename-may-not-delete-what-came-before-its-check", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 90, lateCheck), at(3, 4, retr("b", "x")), at(5, 6, stor("a", "yy", 226)),
			at(91, 92, missing("a")),
		}, Unexplained},
		{"rename-may-delete-what-came-after-its-check", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 90, lateCheck), at(3, 4, retr("b", "x")), at(8, 9, stor("a", "yy", 226)),
			at(91, 92, missing("a")),
		}, Explained},
		{"rename-deletes-nothing-after-it-saw-nothing", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 90, blind), at(3, 4, retr("b", "x")), at(5, 6, dele("a", 250)),
			at(7, 8, missing("a")), at(9, 10, stor("a", "yy", 226)), at(11, 12, size("a", 2)),
			at(91, 92, missing("a")),
		}, Explained}, // it may have checked the source earlier
		{"rename-to-an-older-version-than-an-append", versions, History{
			at(0, 1, stor("a", "x", 226)), at(0, 1, stor("b", "y", 226)),
			at(2, 9, Command{Verb: "RNTO", Name: "b", To: "a", Code: 250}), at(3, 8, appe("z", 226)),
			at(10, 11, retr("a", "xz")), at(10, 11, missing("b")),
		}, Explained},
		{"rename-may-not-notice-what-it-deletes", Rules{}, deletedUnnoticed, Explained},
		{"older-version-than-an-append", versions, older, Explained},
		{"older-version-without-versions", Rules{}, older, Unexplained},
		{"two-renames-of-one-file", Rules{}, History{
			at(0, 1, stor("a", "x", 226)), at(2, 9, rnto("b", 250)), at(2, 9, rnto("c", 250)),
			at(10, 11, mlsd(map[string]int64{"b": 1, "c": 1})),
		}, Explained},

		{"deny", Rules{Deny: true}, inTurn(stor("a", "x", 226), stor("a", "y", 553), retr("a", "x")), Explained},
		{"deny-append-refused", Rules{Deny: true},
			inTurn(stor("a", "x", 226), appe("y", 550), retr("a", "x")), Explained},
		{"deny-append-refused-without-reason", Rules{Deny: true}, inTurn(appe("y", 550)), Unexplained},
		{"deny-two-winners", Rules{Deny: true},
			History{at(0, 9, stor("a", "lock", 226)), at(0, 9, stor("a", "lock", 226))}, Unexplained},
		{"deny-rename-refused", Rules{Deny: true},
			inTurn(stor("a", "x", 226), stor("b", "x", 226), rnto("b", 553), retr("a", "x")), Explained},

		{"directory", Rules{}, inTurn(
			mkd(257), mlsd(made), mlsdOf(nil, 226), mkd(550), rmd(250), mlsd(nil), mlsdOf(nil, 550),
			rmd(550)), Explained},
		{"directory-not-made", Rules{}, inTurn(mkd(257), mlsd(nil)), Unexplained},
		{"directory-made-twice", Rules{}, History{at(0, 9, mkd(257)), at(0, 9, mkd(257))}, Unexplained},
		{"directory-refused-without-reason", Rules{}, inTurn(mkd(550)), Unexplained},
		{"directory-shows-without-a-file", Rules{}, inTurn(stor("d/x", "x", 226), dele("d/x", 250), mlsd(made)),
			Unexplained},
		{"directory-not-removed-while-empty", Rules{}, inTurn(mkd(257), rmd(550)), Unexplained},
		{"directory-removed-during-one-that-makes-it", Rules{},
			History{at(0, 9, rmd(250)), at(1, 8, mkdOfAnother), at(10, 11, mlsd(made))}, Explained},
		{"directory-that-vanished-removed-twice", Rules{},
			inTurn(stor("d/x", "x", 226), dele("d/x", 250), rmd(250), rmd(250)), Unexplained},
		{"stored-below-a-marker", versions, covered(20, missing("a")), Explained},
		{"stored-below-a-marker-stays-there", versions, covered(20, missing("a"), retr("a", "y")), Unexplained},
		{"stored-below-a-marker-without-versions", Rules{}, covered(20, missing("a")), Unexplained},
		{"stored-after-a-marker", versions, covered(31, missing("a")), Unexplained},

		{"directory-of-a-file-that-is-deleted", Rules{Ghosts: true}, ghost(12), Explained},
		{"directory-of-a-file-that-was-deleted", Rules{Ghosts: true}, ghost(15), Unexplained},
		{"directory-of-a-file", Rules{}, ghost(12), Unexplained},
		{"directory-that-vanished-twice", Rules{}, inTurn(
			stor("d/x", "x", 226), dele("d/x", 250), rmd(250), stor("d/x", "x", 226), dele("d/x", 250), rmd(250)),
			Explained},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.history.markSeen()
			if got := tt.rules.Check(tt.history, until); got != tt.want {
				t.Errorf("got %s, want %s:\n%v", got, tt.want, tt.history)
			}
		})
	}
}

// A refusal needs a concurrent change by another client.
func TestUnexplainedRefusals(t *testing.T) {
	t.Parallel()
	other := stor("a", "y", 226)
	other.Client = 1
	refused := stor("a", "x", 451)
	for _, tt := range []struct {
		name    string
		history History
		want    int
	}{
		{"after-another", inTurn(other, refused), 1},
		{"during-another", History{at(0, 9, other), at(5, 15, refused)}, 0},
		{"during-another-name", History{at(0, 9, Command{Client: 1, Verb: "STOR", Name: "b", Code: 226}),
			at(5, 15, refused)}, 1},
		{"during-a-read", History{at(0, 9, Command{Client: 1, Verb: "SIZE", Name: "a", Code: 213}), at(5, 15, refused)},
			1},
		{"during-the-opposite-rename", History{at(0, 9, Command{Client: 1, Verb: "RNTO", Name: "b", To: "a", Code: 451}),
			at(5, 15, rnto("b", 451))}, 0},
		{"during-another-rename-of-the-same-file", History{
			at(0, 9, Command{Client: 1, Verb: "RNTO", Name: "a", To: "c", Code: 451}), at(5, 15, rnto("b", 451)),
		}, 2},
		{"target-of-a-rename", History{at(0, 9, Command{Client: 1, Verb: "STOR", Name: "b", Code: 226}),
			at(5, 15, rnto("b", 451))}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.history.UnexplainedRefusals(); len(got) != tt.want {
				t.Errorf("got %d refusals, want %d:\n%v", len(got), tt.want, got)
			}
		})
	}
}
