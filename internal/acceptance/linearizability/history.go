package linearizability

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Command is what a client sent, and what came back.
type Command struct {
	Client, Replica int

	// Verb is STOR, APPE, REST (which is REST and STOR), KEEP (which resumes an upload by them), DELE, RNTO (which is
	// RNFR and RNTO), MKD, RMD, RETR, SIZE, MLST or MLSD. RNFR alone is one that was refused. The name of a directory
	// ends in a slash. It is empty for the one that all names of the history are in.
	Verb   string
	Name   string
	To     string // of RNTO
	Offset int64  // of REST and KEEP
	Data   string // that STOR, APPE and REST sent, and the whole file of KEEP

	Code    int              // of the last reply, 0 without one
	Got     string           // what RETR brought
	Size    int64            // what SIZE and MLST said
	Listing map[string]int64 // what MLSD said: sizes by name, 0 for a directory

	// Call and Return are the times before the command was sent and after its last reply came, since the beginning of
	// the history.
	Call, Return time.Duration

	// Blind says that a rename may have deleted what was stored after its last look at the source, which it began at
	// Looked at the earliest. See [Plan.Excuse].
	Blind  bool
	Looked time.Duration

	// Settled says that a reply 4xx leaves no doubt, because S3 had answered all requests. The command has no effect,
	// but for a rename: it may have made its copy. See [Plan.Settle].
	Settled bool

	// Seen says of RMD that its replica may have seen the directory before. It then stays one for the user, also when
	// it has vanished. See [History.markSeen].
	Seen bool
}

// isDirectory tells whether a name is that of a directory.
func isDirectory(name string) bool { return strings.HasSuffix(name, "/") }

// directoryOf is the directory that a name is in.
func directoryOf(name string) string {
	return name[:strings.LastIndex(strings.TrimSuffix(name, "/"), "/")+1]
}

// connected tells whether two names are the same, or one is in the other.
func connected(a, b string) bool {
	return a == b || isDirectory(a) && strings.HasPrefix(b, a) || isDirectory(b) && strings.HasPrefix(a, b)
}

// shows tells whether a reply may have shown a directory to the replica: the directory itself, or a file in it.
func (c *Command) shows(directory string) bool {
	for name := range c.Listing {
		if connected(directory, name) {
			return true
		}
	}
	return c.Name != "" && connected(directory, c.Name) && c.Verb != "RMD" &&
		(c.Code/100 == 2 || !c.isRead() && c.Refused() || c.Verb == "MKD")
}

// markSeen finds the directories that replicas may remember: a reply may have shown them, and the client has not
// removed them since. What others remove is remembered by the sessions of a configuration from before a reload.
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

// isRead tells whether the command changes nothing.
func (c *Command) isRead() bool {
	switch c.Verb {
	case "RETR", "SIZE", "MLST", "MLSD", "RNFR":
		return true
	}
	return false
}

// inDoubt tells whether it is open if and when the command takes effect.
func (c *Command) inDoubt() bool { return !c.isRead() && c.Refused() && !c.Settled }

// Refused tells whether there was no reply, or one that asks the client to try again.
func (c *Command) Refused() bool { return c.Code == 0 || c.Code/100 == 4 }

// changes tells whether the command has certainly changed a name.
func (c *Command) changes(name string) bool {
	return !c.isRead() && c.Code/100 == 2 && (connected(c.Name, name) || c.To != "" && connected(c.To, name))
}

// mayBeOvertaken tells whether a conditional write may have changed the name that a command has stored, while the
// command ran.
func (h History) mayBeOvertaken(c *Command) bool {
	name := c.Name
	switch {
	case c.Code/100 != 2:
		return false // what is in doubt may have no effect in any case
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

// mayBeCovered tells whether a rename may have put a delete marker on the name that a command has stored, while the
// command ran.
func (h History) mayBeCovered(c *Command) bool {
	if c.Code/100 != 2 || c.Verb != "STOR" && c.Verb != "KEEP" {
		return false
	}
	return slices.ContainsFunc(h, func(o Command) bool {
		return o.Verb == "RNTO" && o.Code/100 != 5 && o.Name == c.Name &&
			o.Call <= c.Return && (o.inDoubt() || c.Call <= o.Return)
	})
}

// deletedDuring tells whether a file may have been deleted while a command ran.
func (h History) deletedDuring(name string, c *Command) bool {
	return slices.ContainsFunc(h, func(o Command) bool {
		return (o.Verb == "DELE" || o.Verb == "RNTO") && o.Name == name && o.Code/100 != 5 &&
			o.Call <= c.Return && (o.inDoubt() || c.Call <= o.Return)
	})
}

// Groundless is the commands that were refused though nothing was in their way. Without faults, only another client's
// change of the same name is a reason. A rename that was refused may have made its copy.
func (h History) Groundless() (groundless History) {
	for _, c := range h {
		if c.Refused() && !slices.ContainsFunc(h, func(o Command) bool {
			copies := o.Verb == "RNTO" && o.Refused() && (o.To == c.Name || o.To == c.To)
			return o.Client != c.Client && o.Call < c.Return && c.Call < o.Return &&
				(copies || o.changes(c.Name) || c.To != "" && o.changes(c.To))
		}) {
			groundless = append(groundless, c)
		}
	}
	return groundless
}

// String is the command and its reply.
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
		text += " " + shown(c.Data)
	}
	return text + " -> " + c.reply()
}

// reply is what came back, and what the judge knows besides.
func (c *Command) reply() string {
	text := fmt.Sprint(c.Code)
	switch {
	case c.Code == 0:
		text = "no reply"
	case c.Code/100 != 2:
	case c.Verb == "RETR":
		text += " " + shown(c.Got)
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
		if c.Looked > 0 {
			text += fmt.Sprintf(", from %.3fs on)", c.Looked.Seconds())
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
	mayBeBlind = " (may have deleted what came after its last look"
	maySee     = " (its replica may have shown the directory)"
	isSettled  = " (S3 had answered all requests)"
)

// shown is content as a person can read it.
func shown(content string) string {
	const enough = 60
	if len(content) <= enough {
		return fmt.Sprintf("%q", content)
	}
	return fmt.Sprintf("%q...%q (%d bytes)", content[:enough/4], content[len(content)-enough/4:], len(content))
}

// A History is what all clients did, in the order in which they began it.
type History []Command

// sorted is the history in the order of its beginnings.
func (h History) sorted() History {
	return slices.SortedStableFunc(slices.Values(h), func(a, b Command) int { return cmp.Compare(a.Call, b.Call) })
}

// String has a line for each command.
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

// names are all that the history has.
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
