package linearizability

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Command is a command that a client sent, together with the reply.
type Command struct {
	Client, Replica int

	// Verb is STOR, APPE, REST (REST followed by STOR), KEEP (REST followed by STOR to resume an upload), DELE, RNTO
	// (RNFR followed by RNTO), MKD, RMD, RETR, SIZE, MLST or MLSD. RNFR alone means that RNFR was refused. The name of
	// a directory ends in a slash. The name of the directory of the history is empty.
	Verb   string
	Name   string
	To     string // target of RNTO
	Offset int64  // for REST and KEEP
	Data   string // bytes sent by STOR, APPE and REST, or the whole file for KEEP

	Code    int              // code of the last reply, 0 without a reply
	Got     string           // content from RETR
	Size    int64            // size from SIZE and MLST
	Listing map[string]int64 // sizes by name from MLSD, 0 for a directory

	// Call is the time before the command was sent, Return the time after its last reply arrived. Both count from
	// the beginning of the history.
	Call, Return time.Duration

	// Blind means that a rename may have deleted a file that was stored after its last check of the source.
	// CheckedFrom is the earliest time at which that check began. See [Plan.Excuse].
	Blind       bool
	CheckedFrom time.Duration

	// Settled means that a 4xx reply leaves no doubt because S3 responded to all requests. The command has no
	// effect, except for a rename, which may have copied the file. See [Plan.Settle].
	Settled bool

	// Seen is set for RMD if the replica may have seen the directory before. The directory then still exists for
	// the user after it vanished. See [History.markSeen].
	Seen bool
}

func isDirectory(name string) bool { return strings.HasSuffix(name, "/") }

// directoryOf returns the directory that contains name.
func directoryOf(name string) string {
	return name[:strings.LastIndex(strings.TrimSuffix(name, "/"), "/")+1]
}

// connected reports whether two names are equal or one contains the other.
func connected(a, b string) bool {
	return a == b || isDirectory(a) && strings.HasPrefix(b, a) || isDirectory(b) && strings.HasPrefix(a, b)
}

// shows reports whether the reply may have shown the replica the directory or a file in it.
func (c *Command) shows(directory string) bool {
	for name := range c.Listing {
		if connected(directory, name) {
			return true
		}
	}
	return c.Name != "" && connected(directory, c.Name) && c.Verb != "RMD" &&
		(c.Code/100 == 2 || !c.isRead() && c.Refused() || c.Verb == "MKD")
}

// markSeen sets Seen for every RMD whose replica may remember the directory: an earlier reply may have shown it,
// and the same client has not removed it since. Removals by other clients do not count, because sessions from
// before a configuration reload do not see them.
func (h History) markSeen() {
	for i := range h {
		c := &h[i]
		c.Seen = c.Verb == "RMD" && slices.ContainsFunc(h, func(o Command) bool {
			return o.Replica == c.Replica && o.Call < c.Return && (o.Client != c.Client || o.Call < c.Call) &&
				o.shows(c.Name) && !slices.ContainsFunc(h, func(r Command) bool {
				return r.Verb == "RMD" && r.Name == c.Name && r.Client == c.Client && r.Replica == c.Replica && r.Code/100 == 2 &&
					r.Call > o.Return && r.Return < c.Call
			})
		})
	}
}

func (c *Command) isRead() bool {
	switch c.Verb {
	case "RETR", "SIZE", "MLST", "MLSD", "RNFR":
		return true
	}
	return false
}

// inDoubt reports whether the command may still take effect at an unknown time.
func (c *Command) inDoubt() bool { return !c.isRead() && c.Refused() && !c.Settled }

// Refused reports whether there was no reply, or a reply that asks the client to try again.
func (c *Command) Refused() bool { return c.Code == 0 || c.Code/100 == 4 }

// changes reports whether the command certainly changed name.
func (c *Command) changes(name string) bool {
	return !c.isRead() && c.Code/100 == 2 && (connected(c.Name, name) || c.To != "" && connected(c.To, name))
}

// mayBeOvertaken reports whether a conditional write may have changed the name that a command stored, while the
// command ran.
func (h History) mayBeOvertaken(c *Command) bool {
	name := c.Name
	switch {
	case c.Code/100 != 2:
		return false // a command in doubt may have no effect anyway
	case c.Verb == "RNTO":
		name = c.To
	case c.Verb != "STOR" && c.Verb != "KEEP":
		return false
	}
	return slices.ContainsFunc(h, func(o Command) bool {
		return (o.Verb == "APPE" || o.Verb == "REST") && o.Code/100 != 5 && !o.Settled && o.Name == name &&
			o.Call <= c.Return && (o.inDoubt() || c.Call <= o.Return)
	})
}

// mayBeCovered reports whether a rename may have written a delete marker over the name that a command stored, while
// the command ran.
func (h History) mayBeCovered(c *Command) bool {
	if c.Code/100 != 2 || c.Verb != "STOR" && c.Verb != "KEEP" {
		return false
	}
	return slices.ContainsFunc(h, func(o Command) bool {
		return o.Verb == "RNTO" && o.Code/100 != 5 && o.Name == c.Name &&
			o.Call <= c.Return && (o.inDoubt() || c.Call <= o.Return)
	})
}

// deletedDuring reports whether a file may have been deleted while a command ran.
func (h History) deletedDuring(name string, c *Command) bool {
	return slices.ContainsFunc(h, func(o Command) bool {
		return (o.Verb == "DELE" || o.Verb == "RNTO") && o.Name == name && o.Code/100 != 5 &&
			o.Call <= c.Return && (o.inDoubt() || c.Call <= o.Return)
	})
}

// UnexplainedRefusals returns the commands that were refused without a reason. Without faults, the only reason is a
// concurrent change of the same name by another client. A refused rename counts as a change of its target, because
// it may have copied the file.
func (h History) UnexplainedRefusals() (refusals History) {
	for _, c := range h {
		if c.Refused() && !slices.ContainsFunc(h, func(o Command) bool {
			copies := o.Verb == "RNTO" && o.Refused() && (o.To == c.Name || o.To == c.To)
			return o.Client != c.Client && o.Call < c.Return && c.Call < o.Return &&
				(copies || o.changes(c.Name) || c.To != "" && o.changes(c.To))
		}) {
			refusals = append(refusals, c)
		}
	}
	return refusals
}

// String returns the command and its reply.
func (c *Command) String() string {
	text := c.Verb
	switch c.Verb {
	case "REST":
		text = fmt.Sprintf("REST %d, STOR", c.Offset)
	case "KEEP":
		text = fmt.Sprintf("resumes at REST %d, STOR", c.Offset)
	case "RNTO":
		return fmt.Sprintf("RNFR %s, RNTO %s -> %s", c.Name, c.To, c.reply())
	case "MLSD":
		return strings.TrimSpace("MLSD "+c.Name) + " -> " + c.reply()
	}
	text += " " + c.Name
	switch c.Verb {
	case "STOR", "APPE", "REST", "KEEP":
		text += " " + quoted(c.Data)
	}
	return text + " -> " + c.reply()
}

// reply describes the reply, followed by remarks from the analysis.
func (c *Command) reply() string {
	text := fmt.Sprint(c.Code)
	switch {
	case c.Code == 0:
		text = "no reply"
	case c.Code/100 != 2:
	case c.Verb == "RETR":
		text += " " + quoted(c.Got)
	case c.Verb == "SIZE", c.Verb == "MLST":
		text += fmt.Sprintf(" %d bytes", c.Size)
	case c.Verb == "MLSD":
		text += " {"
		for i, name := range slices.Sorted(maps.Keys(c.Listing)) {
			if i > 0 {
				text += ", "
			}
			text += fmt.Sprintf("%s: %d bytes", name, c.Listing[name])
		}
		text += "}"
	}
	if c.Blind {
		text += mayBeBlind
		if c.CheckedFrom > 0 {
			text += fmt.Sprintf(", from %.3fs on)", c.CheckedFrom.Seconds())
		} else {
			text += ")"
		}
	}
	if c.Seen {
		text += maySee
	}
	if c.Settled {
		text += isSettled
	}
	return text
}

// Remarks on replies.
const (
	mayBeBlind = " (may have deleted a file stored after its last check"
	maySee     = " (its replica may have shown the directory)"
	isSettled  = " (S3 responded to all requests)"
)

// quoted returns content in readable form, shortened in the middle if it is long.
func quoted(content string) string {
	const enough = 60
	if len(content) <= enough {
		return fmt.Sprintf("%q", content)
	}
	return fmt.Sprintf("%q...%q (%d bytes)", content[:enough/4], content[len(content)-enough/4:], len(content))
}

// A History lists the commands of all clients, ordered by the time at which they began.
type History []Command

// sorted returns the history ordered by Call.
func (h History) sorted() History {
	return slices.SortedStableFunc(slices.Values(h), func(a, b Command) int { return cmp.Compare(a.Call, b.Call) })
}

// String returns one line for each command.
func (h History) String() string {
	var text strings.Builder
	for _, c := range h {
		until := "          "
		if !c.inDoubt() {
			until = fmt.Sprintf("%9.3fs", c.Return.Seconds())
		} else if c.Code > 0 {
			until = fmt.Sprintf("%9.3fs?", c.Return.Seconds())
		}
		fmt.Fprintf(&text, "%9.3fs-%-11s client %d replica %d  %v\n", c.Call.Seconds(), until, c.Client, c.Replica, &c)
	}
	return text.String()
}

// Count adds the commands to a tally by verb and class of reply, such as "STOR 2xx", "DELE 550" and "APPE without
// reply".
func (h History) Count(tally map[string]int) {
	for _, c := range h {
		switch {
		case c.Code == 0:
			tally[c.Verb+" without reply"]++
		case c.Code/100 == 2:
			tally[c.Verb+" 2xx"]++
		default:
			tally[fmt.Sprint(c.Verb, " ", c.Code)]++
		}
	}
}

// names returns the sorted names in the history.
func (h History) names() []string {
	names := map[string]bool{}
	for _, c := range h {
		names[c.Name], names[c.To] = true, true
		for name := range c.Listing {
			names[name] = true
		}
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}
