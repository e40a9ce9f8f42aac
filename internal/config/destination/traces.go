package destination

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/babelftp/babelftp/internal/config/encryption"
	"github.com/babelftp/babelftp/internal/config/value"
)

// Traces is who gets traces: spans of sessions, of commands and of requests to S3, by OTLP over HTTP.
type Traces struct {
	// URL of a collector of OpenTelemetry, `http://` or `https://`. Spans go to `/v1/traces` below it.
	Endpoint string `yaml:"endpoint" default:"none: nothing is traced" since:"0.2.0"`
	// Share of the sessions that are traced, each with all of its commands.
	Sample value.Share `yaml:"sample" since:"0.2.0"`
	// Headers of each request to the collector, one a line, such as `Authorization: Bearer 3f2a`.
	Headers value.Secret `yaml:"headers" default:"none" since:"0.2.0"`
	// PEM file of the certificate authorities that the server trusts for the URL.
	CAFile string `yaml:"ca_file" default:"those of the system" since:"0.2.0"`
}

// Problems says what is wrong, by key.
func (t Traces) Problems() map[string]string {
	problems := map[string]string{}
	if t.Endpoint == "" {
		if !t.Headers.Empty() || t.CAFile != "" {
			problems["endpoint"] = "is missing: write the address of the collector"
		}
		return problems
	}
	if u, err := url.Parse(t.Endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		problems["endpoint"] = "is no address of a collector: write it like http://collector:4318, and credentials in headers"
	}
	if _, err := t.Header(); err != nil {
		problems["headers"] = err.Error()
	}
	if _, err := encryption.Authorities(t.CAFile); err != nil {
		problems["ca_file"] = err.Error()
	}
	return problems
}

// Header returns the headers. The error shows none, because they may be secret.
func (t Traces) Header() (http.Header, error) {
	header := http.Header{}
	n := 0
	for line := range strings.Lines(t.Headers.Reveal()) {
		n++
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, text, found := strings.Cut(line, ":")
		text = strings.TrimSpace(text)
		if !found || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(text) {
			return nil, fmt.Errorf("line %d is no header: write it like Authorization: Bearer 3f2a", n)
		}
		header.Add(name, text)
	}
	return header, nil
}
