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

// Past is a directory in which users see their files as they were. The zero value has none.
//
//	DIR/2026-11-01/...           at the end of that day
//	DIR/2026-11-01T14-30/...     at that time, perhaps with seconds; with Z at its end in UTC
//	DIR/deleted/...              what was deleted, and is not there now
//
// Below such a name users see and may read what they may read today, and may change nothing. To rename a file or a
// directory from there to another place copies it. Any time up to now is there, and a listing has the last days.
//
// A policy whose patterns name DIR can take rights to the past away, for example all of them by "/DIR".
type Past struct {
	// Dir is absolute and clean, and in "/". It hides what the storage has there.
	Dir string
	// Zone is that of the user's dates.
	Zone *time.Location
	// Policy limits what users may do below Dir, in addition to what they may do today.
	Policy Policy
}

// A Moment chooses the versions of the files that a store shows. The zero value is before everything.
type Moment = driver.Moment

// ErrPast refuses a change of the past.
var ErrPast = fmt.Errorf("%w: the past cannot be changed", fs.ErrPermission)

const (
	// deletedName is the name of what was deleted, and pastDays is how many days a listing has.
	deletedName = "deleted"
	pastDays    = 30

	dayLayout = "2006-01-02"
)

// find returns the moment of a name, which is absolute and clean, and what the name means in the view of that moment.
// The directory of the past itself, and names in it that are no moment, are before everything. It returns false for a
// name of the present.
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

// moment reads the name of a moment.
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

// endOf is the last second in a zone of a day that is given in UTC. Where the clocks go forward at midnight, the next
// day has none, and [time.Date] may return a time before the change.
func endOf(date time.Time, zone *time.Location) time.Time {
	next := time.Date(date.Year(), date.Month(), date.Day()+1, 0, 0, 0, 0, zone)
	if next.Day() == date.Day() {
		_, next = next.ZoneBounds()
	}
	return next.Add(-time.Second)
}

// days are the names of the days before today.
func (p *Past) days(now time.Time) []string {
	year, month, today := now.In(p.Zone).Date()
	names := make([]string, pastDays)
	for i := range names {
		names[i] = time.Date(year, month, today-pastDays+i, 0, 0, 0, 0, time.UTC).Format(dayLayout)
	}
	return names
}

// list has the days before today, and what was deleted.
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

// A day is a directory with the time at which it shows the files.
type day struct {
	directory
	end time.Time
}

func (d day) ModTime() time.Time { return d.end }

// seenThen are the rights to the past where a user has these today. To rename is to copy.
func (r Rights) seenThen() Rights { return Rights{List: r.List, Read: r.Read, Rename: r.Read} }

// rightsAt are the rights for a name that means this today. The directory of all moments can be listed by who sees
// anything in them.
func (v *View) rightsAt(name, today string, past bool) Rights {
	switch {
	case !past:
		return v.Policy.At(today)
	case name == v.Past.Dir:
		_, most := v.Policy.Bounds("/")
		return intersect(v.Past.Policy.At(name), Rights{List: most.List || most.Read})
	}
	return intersect(v.Past.Policy.At(name), v.Policy.At(today)).seenThen()
}

// mayShow reports whether the policy of the past leaves the user any right at or below a name in it.
func (p *Past) mayShow(name string) bool {
	_, most := p.Policy.Bounds(name)
	return most != (Rights{})
}

// moveBack lets a target be seen at a moment.
func (v *View) moveBack(t *target, m Moment) {
	t.past = true
	t.fixed = t.fixed || t.today == "/"
	if m == (Moment{}) { // no moment, so that there is nothing
		t.mount, _ = v.Mounts.find("/")
		t.inner, t.fixed = t.today, t.today == "/"
	}
	then := *t.mount
	then.Store = then.Store.At(m)
	t.mount = &then
}

// bounds are the least and the most rights of the user at or below a target.
func (f *Files) bounds(t *target) (least, most Rights) {
	least, most = f.Policy.Bounds(t.today)
	if t.past {
		leastThen, mostThen := f.Past.Policy.Bounds(t.name)
		least, most = intersect(least, leastThen).seenThen(), intersect(most, mostThen).seenThen()
	}
	return least, most
}

// deniedChange is denied for an operation that changes something.
func (t *target) deniedChange(op string) error {
	if t.past {
		return t.fail(op, ErrPast)
	}
	return t.denied(op)
}

// withPast puts the directory of the past among those that lead to mounts.
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
