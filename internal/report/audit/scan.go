package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"
)

const (
	// blockSize is the number of bytes that are read at once.
	blockSize = 1 << 20
	// disorder is the maximum time by which a line may be later than its successor. Lines are nearly in order of time,
	// because they wait in one queue.
	disorder = time.Minute
	// maxKept limits the bytes of the lines that a search holds in memory.
	maxKept = 8 << 20
)

// A position is a place between two lines of an audit log.
type position struct {
	File   string `json:"f,omitempty"` // id of the file; empty for the end of the log
	Offset int64  `json:"o,omitempty"` // of the next newer line, in the decompressed file
}

// atEnd is the offset of a position at the end of a file.
const atEnd = math.MaxInt64

// A budget limits what one search reads.
type budget struct {
	bytes    int64 // that may still be read
	read     int64
	deadline time.Time
}

func (b *budget) spend(n int) { b.bytes, b.read = b.bytes-int64(n), b.read+int64(n) }

func (b *budget) late() bool { return time.Now().After(b.deadline) }

func (b *budget) spent() bool { return b.bytes <= 0 || b.late() }

// A scan reads lines of an audit log, newest first.
type scan struct {
	files  []*logFile // newest first
	budget *budget

	from, to time.Time // times of the lines to read; zero values mean no limit
	end      *position // where to stop, or nil

	// needles are texts that each wanted line contains. Blocks without them are skipped.
	needles [][]byte
	match   func(line []byte) bool
	// found is called for the lines that match. It returns false to end the scan before older lines.
	found func(line []byte, at position) (more bool)
	// unordered allows calls of found in any order within a compressed file.
	unordered bool
	// keep is the number of lines of a compressed file that found needs at most.
	keep int

	problems []string        // files that could not be read
	unread   map[string]bool // their ids
}

// errCursorGone reports that the file of a position does not exist any more.
var errCursorGone = errors.New("the file in which the search would continue was removed; search again")

// run scans the lines before a position. It returns the position before which it stopped, and whether it has read all
// lines.
func (s *scan) run(ctx context.Context, start position) (stopped position, complete bool, err error) {
	begin := 0
	if start.File != "" {
		begin = slices.IndexFunc(s.files, func(f *logFile) bool { return f.id == start.File })
		if begin < 0 {
			return start, false, errCursorGone
		}
	}
	for i := begin; i < len(s.files); i++ {
		f := s.files[i]
		offset := int64(atEnd)
		if i == begin && start.File != "" {
			offset = start.Offset
		}
		last := s.end != nil && s.end.File == f.id
		if s.covers(i) && !s.unread[f.id] {
			if s.budget.spent() {
				return position{f.id, offset}, false, nil
			}
			at, more, err := s.scanFile(ctx, f, offset)
			switch {
			case ctx.Err() != nil:
				return start, false, ctx.Err()
			case err != nil:
				s.problems = append(s.problems, fmt.Sprintf("%s was not searched completely: %v", f.name, err))
				s.unread[f.id] = true
			case !more:
				return position{f.id, at}, false, nil
			}
		}
		if last {
			return *s.end, false, nil
		}
	}
	return position{}, true, nil
}

// covers reports whether a file may have lines between the times from and to.
func (s *scan) covers(i int) bool {
	if !s.to.IsZero() && s.files[i].first.After(s.to.Add(disorder)) {
		return false
	}
	return s.from.IsZero() || i == 0 || !s.files[i-1].first.Before(s.from.Add(-disorder))
}

// scanFile scans the lines of a file before an offset. If found has returned false or the budget is spent, more is
// false, and at is the offset to continue before.
func (s *scan) scanFile(ctx context.Context, f *logFile, offset int64) (at int64, more bool, err error) {
	switch {
	case !f.compressed():
	case s.end != nil && s.end.File == f.id: // the earlier scan has read nothing of it
		return offset, true, nil
	default:
		return s.scanCompressed(ctx, f, offset)
	}
	file, err := os.Open(f.name)
	if err != nil {
		return 0, true, err
	}
	defer file.Close()
	low, high := int64(0), min(offset, f.size)
	if !s.from.IsZero() {
		low, _ = around(file, f.size, s.from.Add(-disorder))
	}
	if !s.to.IsZero() {
		_, above := around(file, f.size, s.to.Add(disorder))
		high = min(high, above)
	}
	if s.end != nil && s.end.File == f.id {
		low = max(low, min(s.end.Offset, f.size))
	}
	return s.scanBackward(ctx, file, f.id, low, high)
}

// scanBackward scans the lines between two offsets, the last one first.
func (s *scan) scanBackward(ctx context.Context, in io.ReaderAt, id string, low, high int64) (int64, bool, error) {
	block := max(0, min(blockSize, high-low))
	buffer := make([]byte, block+min(maxEntry, max(0, high-low)))
	rest := 0 // length of the end of a line, at the beginning of buffer
	for at := high; at > low; {
		if err := ctx.Err(); err != nil {
			return at, false, err
		}
		n := int(min(block, at-low))
		at -= int64(n)
		copy(buffer[n:], buffer[:rest])
		if _, err := in.ReadAt(buffer[:n], at); err != nil {
			return at, false, err
		}
		s.budget.spend(n)
		data, begin := buffer[:n+rest], 0
		if at > low {
			if begin = bytes.IndexByte(data, '\n') + 1; begin == 0 { // the line begins in an earlier block
				if rest = len(data); rest > maxEntry {
					rest = 0 // what is left of such a line is not valid JSON
				}
				continue
			}
		}
		for _, line := range slices.Backward(s.lines(data[begin:])) {
			start := at + int64(begin+line.start)
			if text := data[begin+line.start : begin+line.end]; s.match(text) && !s.found(text, position{id, start}) {
				return start, false, nil
			}
		}
		if rest = begin; rest > maxEntry {
			rest = 0
		}
		if s.budget.spent() && at > low {
			return at + int64(begin), false, nil
		}
	}
	return low, true, nil
}

// A lineBounds is the place of a line in a block.
type lineBounds struct{ start, end int }

// lines returns the lines of a block that contain all needles.
func (s *scan) lines(block []byte) (found []lineBounds) {
	var first []byte
	for i, needle := range s.needles {
		if !bytes.Contains(block, needle) {
			return nil
		}
		if i == 0 {
			first = needle
		}
	}
	for at := 0; at < len(block); {
		hit := bytes.Index(block[at:], first) // 0 without a needle
		if hit < 0 {
			break
		}
		start := at + bytes.LastIndexByte(block[at:at+hit], '\n') + 1
		end := len(block)
		if length := bytes.IndexByte(block[at+hit:], '\n'); length >= 0 {
			end = at + hit + length
		}
		at = end + 1
		line := block[start:end]
		if len(line) > 0 && !slices.ContainsFunc(s.needles, func(n []byte) bool { return !bytes.Contains(line, n) }) {
			found = append(found, lineBounds{start, end})
		}
	}
	return found
}

// A keptLine is a line of a compressed file that matches.
type keptLine struct {
	text []byte
	at   int64
}

// errTooLarge reports a compressed file that takes too long, because it can only be read from its beginning.
var errTooLarge = errors.New("it is compressed and takes too long to read; decompress it, or use babelftp audit")

// errTooMany reports a compressed file with too many lines for one search.
var errTooMany = errors.New("it is compressed and has too many matching lines; decompress it, or use babelftp audit")

// scanCompressed scans the lines of a compressed file before an offset. It reads the file from its beginning, and
// keeps the last lines that match.
func (s *scan) scanCompressed(ctx context.Context, f *logFile, before int64) (at int64, more bool, err error) {
	alone := s.budget.read == 0
	in, err := OpenFile(f.name)
	if err != nil {
		return 0, true, err
	}
	defer in.Close()
	var kept []keptLine
	size, dropped, full := 0, false, false
	err = s.forEachLine(ctx, in, before, func(line []byte, at int64) bool {
		if !s.match(line) {
			return true
		}
		if s.unordered {
			full = !s.found(line, position{f.id, before})
			return !full
		}
		kept, size = append(kept, keptLine{bytes.Clone(line), at}), size+len(line)
		for len(kept) > s.keep || size > maxKept && len(kept) > 1 {
			size -= len(kept[0].text)
			kept[0].text = nil
			kept, dropped = kept[1:], true
		}
		return true
	})
	switch {
	case errors.Is(err, errSpent) && alone:
		return 0, true, errTooLarge
	case errors.Is(err, errSpent):
		return before, false, nil
	case full: // no place in the file to continue at
		return 0, true, errTooMany
	}
	for _, line := range slices.Backward(kept) {
		if !s.found(line.text, position{f.id, line.at}) {
			return line.at, false, nil
		}
	}
	if dropped {
		return kept[0].at, false, nil
	}
	return 0, true, err
}

// errSpent reports that the budget ended within a compressed file.
var errSpent = errors.New("budget spent")

// forEachLine calls do for the lines of a stream that contain all needles and end before an offset, until do returns
// false.
func (s *scan) forEachLine(ctx context.Context, in io.Reader, before int64, do func(line []byte, at int64) bool) error {
	buffer := make([]byte, blockSize+maxEntry)
	alone := s.budget.read == 0
	rest := 0
	for at := int64(0); at < before; {
		n, err := io.ReadFull(in, buffer[rest:rest+blockSize])
		s.budget.spend(n)
		data := buffer[:rest+n]
		end := bytes.LastIndexByte(data, '\n') + 1
		if ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); ended && n < blockSize {
			end = len(data)
		}
		if first, ok := timeOf(data); ok && !s.to.IsZero() && first.After(s.to.Add(disorder)) {
			return nil
		}
		for _, line := range s.lines(data[:end]) {
			start := at + int64(line.start)
			if start >= before || !do(data[line.start:line.end], start) {
				return nil
			}
		}
		if at, rest = at+int64(end), copy(buffer, data[end:]); rest > maxEntry {
			at, rest = at+int64(rest), 0
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF), n < blockSize && errors.Is(err, io.ErrUnexpectedEOF) && atEOF(in):
			return nil
		case err != nil:
			return err
		case s.budget.late(), s.budget.spent() && !alone:
			return errSpent
		}
	}
	return nil
}

// atEOF reports whether a stream has ended without an error.
func atEOF(in io.Reader) bool {
	_, err := in.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// around returns two offsets in a file whose lines are sorted by time: all lines before below are older than t, and no
// line from above on is. A line begins at each of them. They are close to each other if the lines have times.
func around(file io.ReaderAt, size int64, t time.Time) (below, above int64) {
	below, above = 0, size
	for above-below > blockSize {
		at, first, ok := lineAfter(file, below+(above-below)/2, above)
		switch {
		case !ok:
			return below, above
		case first.Before(t):
			below = at
		default:
			above = at
		}
	}
	return below, above
}

// lineAfter returns the first line with a time that begins after an offset and before end.
func lineAfter(file io.ReaderAt, offset, end int64) (at int64, first time.Time, ok bool) {
	for _, size := range []int64{blockSize / 16, 2 * maxEntry} {
		data := make([]byte, min(size, end-offset))
		if _, err := file.ReadAt(data, offset); err != nil {
			return 0, time.Time{}, false
		}
		for at := bytes.IndexByte(data, '\n') + 1; at > 0; {
			line, _, _ := bytes.Cut(data[at:], []byte("\n"))
			if first, ok := timeOf(line); ok {
				return offset + int64(at), first, true
			}
			next := bytes.IndexByte(data[at:], '\n') + 1
			if next == 0 {
				break
			}
			at += next
		}
	}
	return 0, time.Time{}, false
}

// stringIn returns a string value of a JSON line. key is the key in quotes, a colon and a quote. Within a value such a
// text has backslashes, so it is found only as a key.
func stringIn(line []byte, key string) (value string, ok bool) {
	raw, escaped := rawIn(line, key)
	if raw == nil {
		return "", false
	}
	if !escaped {
		return string(raw), true
	}
	err := json.Unmarshal(slices.Concat([]byte{'"'}, raw, []byte{'"'}), &value)
	return value, err == nil
}

// rawIn is like stringIn, but returns the value as it is in the line. It returns nil if there is none.
func rawIn(line []byte, key string) (raw []byte, escaped bool) {
	begin := bytes.Index(line, []byte(key))
	if begin < 0 {
		return nil, false
	}
	rest := line[begin+len(key):]
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '"':
			return rest[:i], escaped
		case '\\':
			escaped = true
			i++
		}
	}
	return nil, false
}
