package admin

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/report/audit"
)

const (
	// maxExported limits the lines of an export.
	maxExported = 100_000
	// maxExportTime limits the time of an export.
	maxExportTime = 10 * time.Minute
)

// csvColumns are the columns of an export as CSV, which are keys of audit lines.
func csvColumns() []string {
	return strings.Fields("time replica event outcome tenant user administrator client command code path to_path s3_uri " +
		"to_s3_uri bytes size etag checksum tls_version certificate reason limit banned fields more " +
		"error session")
}

// exportActivity sends all lines of a search as they are found. The last line says so if there are more.
func (h *Handler) exportActivity(w http.ResponseWriter, r *http.Request) {
	q, err := queryOf(r)
	format := r.FormValue("format")
	if err == nil && format != "csv" && format != "jsonl" {
		err = &Error{http.StatusBadRequest, fmt.Sprintf("invalid format %q: want csv or jsonl", format)}
	}
	q.Limit = audit.MaxLimit
	var page *Activity
	if err == nil {
		page, err = h.search(r.Context(), q, nil)
	}
	if err != nil {
		Fail(w, err)
		return
	}
	out := bufio.NewWriter(w)
	lines := exporter(&jsonExport{out})
	media := "application/jsonl"
	if format == "csv" {
		lines, media = newCSVExport(out), "text/csv; charset=utf-8"
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="babelftp-audit-%s.%s"`,
		time.Now().UTC().Format("20060102T150405Z"), format))
	stream := http.NewResponseController(w)
	count, began := 0, time.Now()
	for {
		_ = stream.SetWriteDeadline(time.Now().Add(maxSearchWait))
		for _, line := range page.Events {
			if err := lines.write(line); err != nil {
				return
			}
		}
		if count += len(page.Events); page.Next == "" || count >= maxExported || time.Since(began) > maxExportTime {
			break
		}
		if out.Flush() != nil || stream.Flush() != nil {
			return // the client has disconnected
		}
		cursors, _ := parseCursors(page.Next) // created by search
		if page, err = h.search(r.Context(), q, cursors); err != nil {
			_ = lines.end("export failed: " + err.Error())
			return
		}
	}
	missing := incomplete(page)
	if missing == "" || lines.end(missing) == nil {
		_ = out.Flush()
	}
}

// maxSearchWait limits the time that a client may take to read a page of an export, and the search for it.
const maxSearchWait = time.Minute

// incomplete returns what an export that ends with a page lacks, or an empty string.
func incomplete(page *Activity) string {
	var reasons []string
	if page.Next != "" {
		reasons = append(reasons, "there are more lines: export them with an earlier \"to\"")
	}
	for _, s := range page.Sources {
		if s.Reason != "" {
			reasons = append(reasons, fmt.Sprintf("replica %d: %s", s.Replica, s.Reason))
		}
	}
	return strings.Join(reasons, "; ")
}

// An exporter writes audit lines in a format.
type exporter interface {
	write(line json.RawMessage) error
	// end writes why lines are missing.
	end(missing string) error
}

// jsonExport writes JSON lines.
type jsonExport struct{ *bufio.Writer }

func (e *jsonExport) write(line json.RawMessage) error {
	_, err := e.Write(append(line, '\n'))
	return err
}

func (e *jsonExport) end(missing string) error {
	text, err := json.Marshal(map[string]string{"incomplete": missing})
	if err == nil {
		err = e.write(text)
	}
	if err == nil {
		err = e.Flush()
	}
	return err
}

// csvExport writes CSV (RFC 4180) for spreadsheets.
type csvExport struct {
	*csv.Writer
	columns []string
}

// byteOrderMark makes spreadsheets read a file as UTF-8.
const byteOrderMark = "\ufeff"

func newCSVExport(out io.Writer) *csvExport {
	_, _ = io.WriteString(out, byteOrderMark) // a later write returns the error too
	e := &csvExport{csv.NewWriter(out), csvColumns()}
	_ = e.Write(e.columns)
	return e
}

func (e *csvExport) write(line json.RawMessage) error {
	var fields map[string]any
	in := json.NewDecoder(strings.NewReader(string(line)))
	in.UseNumber()
	if err := in.Decode(&fields); err != nil {
		return nil //nolint:nilerr // a search returns only valid lines
	}
	cells := make([]string, len(e.columns))
	for i, column := range e.columns {
		if value, ok := fields[column]; ok {
			cells[i] = cell(fmt.Sprint(value))
		}
	}
	return e.flush(cells)
}

func (e *csvExport) flush(cells []string) error {
	if err := e.Write(cells); err != nil {
		return err
	}
	e.Flush()
	return e.Error()
}

func (e *csvExport) end(missing string) error { return e.flush([]string{cell(missing)}) }

// cell returns the text of a cell that no spreadsheet takes for a formula. Users choose the names of files.
func cell(text string) string {
	if strings.ContainsAny(text[:min(1, len(text))], "=+-@\t\r\n") {
		return "'" + text
	}
	return text
}
