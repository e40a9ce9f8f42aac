package driver_test

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
)

// checkRefusal checks that an operation was refused for a reason. If nothing went wrong between the driver and S3, a
// definite refusal must match a state during the operation, and any other refusal must be caused by another operation.
func (m *model) checkRefusal(op *operation) {
	if op.err == nil || strings.HasPrefix(op.Do, "foreign") || op.Do == "sweep" || errors.Is(op.err, errClientLost) {
		return
	}
	refused, reason := m.reasonOf(op)
	if !refused {
		reason = op.faulty.Load() || op.session.replica.outage() != nil || m.disturbed(op)
	}
	if !reason {
		m.violate(
			"refusal", "step %d (%s %q %q) was refused without a reason: %v", op.ID, op.Do, op.Name, op.To, op.err)
	}
}

// reasonOf reports whether the refusal is definite, and whether it had a reason.
func (m *model) reasonOf(op *operation) (definite, reason bool) {
	is := func(kind error) bool { return errors.Is(op.err, kind) }
	upload, moves := op.content != nil || isUpload(op.Do), op.Do == "rename" || op.Do == "copy"
	denies := op.session.plan.NoOverwrite
	switch {
	case is(fs.ErrNotExist) && (op.Do == "list" || op.Do == "cwd" || op.Do == "rmdir"):
		return true, m.once(op, func(at int) bool { return !m.isDir(op.Name, at) })
	case is(fs.ErrNotExist) && moves:
		return true, m.lacked(op, op.Name) && m.once(op, func(at int) bool { return !m.isDir(op.Name, at) })
	case is(fs.ErrNotExist):
		return true, m.lacked(op, op.Name)
	case is(syscall.ENOTEMPTY) && op.Do == "rmdir":
		return true, m.once(op, func(at int) bool { return m.isFull(op.Name, at) })
	case is(syscall.ENOTEMPTY):
		return true, moves && m.once(op, func(at int) bool { return m.isFull(op.To, at) })
	case is(fs.ErrExist) && op.Do == "mkdir":

		return true, m.had(op, op.Name) || m.once(op, func(at int) bool { return m.isDir(op.Name, at) })
	case is(fs.ErrExist) && moves:
		return true, denies && m.had(op, op.To)
	case is(fs.ErrExist):
		return true, denies && upload && m.had(op, op.Name)
	case is(syscall.ENOTDIR) && moves:
		return true, m.had(op, op.To)
	case is(syscall.ENOTDIR):
		return true, m.had(op, op.Name)
	case is(syscall.EISDIR) && moves:
		return true, m.once(op, func(at int) bool { return m.isDir(op.To, at) })
	case is(syscall.EISDIR):
		return true, m.once(op, func(at int) bool { return m.isDir(op.Name, at) })
	case is(syscall.EDQUOT):
		return true, m.world.Quota > 0 && m.mostStored(op) > m.world.Quota
	case is(fs.ErrInvalid):
		return true, op.Do == "rest" && m.once(op, func(at int) bool {
			return len(m.at(op.Name, at).content) < op.Offset
		}) ||
			upload && (op.sizeReported || len(m.interrupted(op)) > 0)
	case is(fs.ErrPermission), is(errors.ErrUnsupported), is(syscall.ENAMETOOLONG):
		return true, false
	}
	return false, false
}

func isUpload(do string) bool {
	switch do {
	case "stor", "appe", "rest", "resume", "resume-append":
		return true
	}
	return false
}

// at returns the state of a key after a request.
func (m *model) at(key string, moment int) state {
	var found state
	for _, s := range m.versions[key] {
		if s.from > moment {
			break
		}
		found = s
	}
	return found
}

// once reports whether something was true at any time during an operation.
func (m *model) once(op *operation, was func(moment int) bool) bool {
	for moment := op.start; moment <= op.end; moment++ {
		if was(moment) {
			return true
		}
	}
	return false
}

// lacked and had report whether a file was missing, or existed, at any time during an operation.
func (m *model) lacked(op *operation, name string) bool { return m.wasAbsent(name, op) }

func (m *model) had(op *operation, name string) bool {
	return m.once(op, func(at int) bool { return m.at(name, at).exists })
}

// isDir reports whether a directory existed, with a marker or with any file in it.
func (m *model) isDir(name string, moment int) bool {
	for key := range m.versions {
		if strings.HasPrefix(key, name+"/") && m.at(key, moment).exists {
			return true
		}
	}
	return false
}

// isFull reports whether a directory contained more than its marker.
func (m *model) isFull(name string, moment int) bool {
	for key := range m.versions {
		s := m.at(key, moment)
		if strings.HasPrefix(key, name+"/") && s.exists && (key != name+"/" || len(s.content) > 0) {
			return true
		}
	}
	return false
}

// disturbed reports whether another operation used the same names.
func (m *model) disturbed(op *operation) bool {
	for _, other := range m.operations {
		if other == op || other.ended && other.end < op.start {
			continue
		}
		if other.Do == "foreign-abort" { // affects all uploads
			return true
		}
		for _, a := range []string{op.Name, op.To} {
			for _, b := range []string{other.Name, other.To} {
				if a != "" && b != "" && (a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")) {
					return true
				}
			}
		}
	}
	return false
}

// mostStored returns the maximum number of bytes that a quota may have counted, including uploads in progress. The
// bytes may have been counted at any time since the history began.
func (m *model) mostStored(op *operation) (most int64) {
	for moment := 0; moment <= op.end; moment++ {
		sum := int64(0)
		for key := range m.versions {
			sum += int64(len(m.at(key, moment).content))
		}
		most = max(most, sum)
	}
	for _, other := range m.operations {
		if other.ended && other.end < op.start && !other.faulty.Load() && other.err == nil {
			continue
		}
		size := int64(len(other.content))
		for _, s := range m.alive(other.Name, other.start, m.seq) {
			size = max(size, int64(len(s.content)+len(other.content)))
		}
		if other.Do == "rename" || other.Do == "copy" {
			size = most
		}
		most += size
	}
	return most
}
