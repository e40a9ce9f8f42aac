package view

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/babelftp/babelftp/driver"
)

// Past is a directory with older versions of the user's files. The zero value disables it.
//
//	DIR/2026-11-01/...           files at the end of that day
//	DIR/2026-11-01T14-30/...     files at that time, optionally with seconds, and with a trailing Z in UTC
//	DIR/deleted/...              files that were deleted and do not exist now
//
// Below such a name, users may list and read what they may list and read today, and change nothing. Renaming a file or
// directory to a place outside copies it. Any time up to now is valid; listings show the last days.
//
// Rules of a policy that name DIR can restrict the access to older versions, for example completely with "/DIR".
type Past struct {
	// Dir is absolute, clean, and directly below "/". It hides files in the storage with the same name.
	Dir string
	// Zone is the time zone of the dates.
	Zone *time.Location
	// Policy further restricts what users may do below Dir.
	Policy Policy
}

// A Moment selects the versions of files that a store shows. The zero value is before everything.
type Moment = driver.Moment

// ErrPast reports an attempt to change an older version.
var ErrPast = fmt.Errorf("%w: earlier versions cannot be changed", fs.ErrPermission)

const (
	// deletedName is the directory of deleted files. pastDays is the number of days in a listing.
	deletedName = "deleted"
	pastDays    = 30

	dayLayout = "2006-01-02"
)

// find returns the moment in a name, which is absolute and clean, and the rest of the name at that moment. The
// directory Dir itself and invalid moments in it are before everything. ok is false for a name outside of Dir.
func (p *Past) find(name string) (today string, m Moment, ok bool) {
	if p.Dir == "" {
		return name, m, false
	}
	rest, ok := Within(name, p.Dir)
	if !ok {
		return name, m, false
	}
	segment, deeper, _ := strings.Cut(rest[len("/"):], "/")
	if m, ok := p.moment(segment, time.Now()); ok {
		return "/" + deeper, m, true
	}
	return rest, Moment{}, true
}

// moment parses the name of a moment.
func (p *Past) moment(name string, now time.Time) (m Moment, ok bool) {
	if name == deletedName {
		return Moment{Deleted: true}, true
	}
	zone := p.Zone
	name, utc := strings.CutSuffix(strings.ReplaceAll(name, ":", "-"), "Z")
	if utc {
		zone = time.UTC
	}
	if day, err := time.Parse(dayLayout, name); err == nil {
		return Moment{Time: endOf(day, zone)}, endOf(day.AddDate(0, 0, -1), zone).Before(now)
	}
	for _, layout := range []string{dayLayout + "T15-04", dayLayout + "T15-04-05"} {
		if at, err := time.ParseInLocation(layout, name, zone); err == nil {
			return Moment{Time: at}, !at.After(now)
		}
	}
	return Moment{}, false
}

// endOf returns the last second of a day in a zone. If the clocks go forward at midnight, the next day has no
// midnight, and [time.Date] may return a time before the change.
func endOf(date time.Time, zone *time.Location) time.Time {
	next := time.Date(date.Year(), date.Month(), date.Day()+1, 0, 0, 0, 0, zone)
	if next.Day() == date.Day() {
		_, next = next.ZoneBounds()
	}
	return next.Add(-time.Second)
}

// days returns the names of the days before today.
func (p *Past) days(now time.Time) []string {
	year, month, today := now.In(p.Zone).Date()
	names := make([]string, pastDays)
	for i := range names {
		names[i] = time.Date(year, month, today-pastDays+i, 0, 0, 0, 0, time.UTC).Format(dayLayout)
	}
	return names
}

// list yields the days before today, and the directory of deleted files.
func (p *Past) list(yield func(fs.FileInfo, error) bool) {
	now := time.Now()
	for _, name := range p.days(now) {
		m, _ := p.moment(name, now)
		if !yield(day{directory(name), m.Time}, nil) {
			return
		}
	}
	yield(Directory(deletedName), nil)
}

// A day is a directory entry with the time of its moment.
type day struct {
	directory
	end time.Time
}

func (d day) ModTime() time.Time { return d.end }

// inPast returns the rights for older versions if a user has these rights today. Renaming is copying.
func (r Rights) inPast() Rights { return Rights{List: r.List, Read: r.Read, Rename: r.Read} }

// rightsAt returns the rights for a name that corresponds to today's name. Users may list Dir if they may list or read
// anything.
func (v *View) rightsAt(name, today string, past bool) Rights {
	switch {
	case !past:
		return v.Policy.At(today)
	case name == v.Past.Dir:
		_, most := v.Policy.Bounds("/")
		return intersect(v.Past.Policy.At(name), Rights{List: most.List || most.Read})
	}
	return intersect(v.Past.Policy.At(name), v.Policy.At(today)).inPast()
}

// mayShow reports whether the policy of the past leaves the user any rights at or below a name.
func (p *Past) mayShow(name string) bool {
	_, most := p.Policy.Bounds(name)
	return most != (Rights{})
}

// moveBack makes a target refer to a moment.
func (v *View) moveBack(t *target, m Moment) {
	t.past = true
	t.fixed = t.fixed || t.today == "/"
	if m == (Moment{}) { // invalid moment: show nothing
		t.mount, _ = v.Mounts.find("/")
		t.inner, t.fixed = t.today, t.today == "/"
	}
	then := *t.mount
	then.Store = then.Store.At(m)
	t.mount = &then
}

// bounds returns the least and the most rights of the user at or below a target.
func (f *Files) bounds(t *target) (least, most Rights) {
	least, most = f.Policy.Bounds(t.today)
	if t.past {
		leastThen, mostThen := f.Past.Policy.Bounds(t.name)
		least, most = intersect(least, leastThen).inPast(), intersect(most, mostThen).inPast()
	}
	return least, most
}

// deniedChange returns the error for a change that is not permitted.
func (t *target) deniedChange(op string) error {
	if t.past {
		return t.fail(op, ErrPast)
	}
	return t.deniedError(op)
}

// withPast adds Dir to the entries that lead to mounts.
func (v *View) withPast(t *target, own, hides []string) (allOwn, allHides []string) {
	if v.Past.Dir == "" || t.name != path.Dir(v.Past.Dir) {
		return own, hides
	}
	name := path.Base(v.Past.Dir)
	if v.Past.mayShow(v.Past.Dir) {
		own = append(own, name+"/")
		slices.Sort(own)
	}
	return own, append(hides, name)
}
