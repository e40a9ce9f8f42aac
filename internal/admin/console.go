package admin

import (
	"net/http"
	"slices"
)

// A Configuration is the configuration in use.
type Configuration struct {
	Text string `json:"text"` // YAML without secrets
}

// consoleRoutes returns the endpoints that show the state of all replicas.
func (h *Handler) consoleRoutes() []route {
	export := append(activityParameters(), parameter{name: "format", meaning: "csv or jsonl", required: true,
		schema: map[string]any{"type": "string", "enum": []string{"csv", "jsonl"}}})
	return []route{
		{http.MethodGet, "/replicas", Viewer, "List the replicas, and what they see", nil, reads(h.listReplicas)},
		{http.MethodGet, "/history", Viewer, "Show the last hour of all replicas together", nil, reads(h.listHistory)},
		{http.MethodGet, "/problems", Viewer, "List the problems of all replicas, the worst ones first",
			[]parameter{{name: "lang", meaning: "language of findings, if it differs from Accept-Language"}},
			reads(h.listProblems)},
		{http.MethodGet, "/configuration", Viewer, "Show the configuration in use without secrets",
			[]parameter{{name: "tenant", meaning: "only this tenant"}}, reads(h.configuration)},
		{http.MethodGet, "/activity", Viewer, "Search the audit logs of all replicas, newest lines first",
			slices.Concat(activityParameters(), pageParameters()), reads(h.searchActivity)},
		{http.MethodGet, "/activity/export", Viewer, "Export what a search of the audit logs finds", export,
			streams("text/csv", h.exportActivity)},
	}
}

func (h *Handler) configuration(r *http.Request) (*Configuration, error) {
	tenant := r.FormValue("tenant")
	text, ok, err := h.Configuration(tenant)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errNoTenant(tenant, h.Source.Tenants(nil))
	}
	return &Configuration{text}, nil
}
