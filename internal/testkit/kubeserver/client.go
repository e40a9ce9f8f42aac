package kubeserver

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// requestTimeout limits one request on a busy machine.
const requestTimeout = time.Minute

// A Client sends requests with the rights of one user.
type Client struct {
	tb             testing.TB
	url, token, ca string // ca is a certificate in PEM
	http           *http.Client
}

// An Object is a resource, such as {"apiVersion": "v1", "kind": "Secret", ...}.
type Object map[string]any

// NewClient returns a client for the API server at url that accepts certificates of ca, or uses HTTP if ca is empty.
func NewClient(tb testing.TB, url, token, ca string) *Client {
	return &Client{tb, url, token, ca, &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: must.CertPool(ca)},
			ForceAttemptHTTP2: true,
		},
		Timeout: requestTimeout,
	}}
}

// For returns the client for a subtest.
func (c *Client) For(tb testing.TB) *Client { return &Client{tb, c.url, c.token, c.ca, c.http} }

// As returns a client with another token.
func (c *Client) As(token string) *Client { return &Client{c.tb, c.url, token, c.ca, c.http} }

// Kubeconfig writes a kubeconfig for the client's user with a default namespace, and returns the name of the file.
func (c *Client) Kubeconfig(namespace string) string {
	c.tb.Helper()
	dir := c.tb.TempDir()
	ca, name := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "kubeconfig")
	must.WriteFile(c.tb, ca, c.ca)
	must.WriteFile(c.tb, name, fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: test, user: {token: %q}}]
contexts: [{name: test, context: {cluster: test, user: test, namespace: %q}}]
`, c.url, ca, c.token, namespace))
	return name
}

// Request sends a request. kind is the media type of the body, if there is one.
func (c *Client) Request(method, path, kind, body string, header ...string) (int, string, error) {
	request, err := http.NewRequestWithContext(c.tb.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// Post creates the object in body.
func (c *Client) Post(path, kind, body string) {
	c.tb.Helper()
	if code, text, err := c.Request(http.MethodPost, path, kind, body); err != nil || code != http.StatusCreated {
		c.tb.Errorf("POST %s: %d %v %s\n%s", path, code, err, text, body)
	}
}

// WaitFor requests a path until the status is 200.
func (c *Client) WaitFor(path string) {
	c.tb.Helper()
	for end := time.Now().Add(startTimeout); ; time.Sleep(pollInterval) {
		code, text, err := c.Request(http.MethodGet, path, "", "")
		if err == nil && code == http.StatusOK {
			return
		}
		if time.Now().After(end) {
			c.tb.Fatalf("GET %s: %d %v %s", path, code, err, text)
		}
	}
}

// A Refusal is an error response of the API server.
type Refusal struct {
	Code    int
	Message string
}

func (r *Refusal) Error() string { return fmt.Sprintf("%d: %s", r.Code, r.Message) }

// do sends a request and decodes the object in the response.
func (c *Client) do(method, path, kind, body string) (Object, error) {
	code, text, err := c.Request(method, path, kind, body)
	if err != nil {
		return nil, err
	}
	var o Object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return nil, &Refusal{code, text}
	}
	if code >= http.StatusBadRequest {
		return nil, &Refusal{code, fmt.Sprint(o["message"])}
	}
	return o, nil
}

// Get returns the object or the list at a path.
func (c *Client) Get(path string) (Object, error) { return c.do(http.MethodGet, path, "", "") }

// Delete deletes the object at a path.
func (c *Client) Delete(path string) error {
	_, err := c.do(http.MethodDelete, path, "", "")
	return err
}

// Patch changes the object at a path by a merge patch.
func (c *Client) Patch(path, patch string) error {
	_, err := c.do(http.MethodPatch, path, "application/merge-patch+json", patch)
	return err
}

// Create creates the object in a YAML document, and returns it as it is stored. validation is Strict, as kubectl
// requests by default, Warn or Ignore: what happens to unknown fields.
func (c *Client) Create(document, validation string) (Object, error) {
	var o map[string]any
	if err := yaml.Unmarshal([]byte(document), &o); err != nil {
		return nil, err
	}
	path, err := Path(o)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	collection := path[:strings.LastIndex(path, "/")]
	return c.do(http.MethodPost, collection+"?fieldValidation="+validation, "application/json", string(body))
}

// TryApply creates or changes the objects in YAML documents, like kubectl apply --server-side. Unknown fields are
// errors.
func (c *Client) TryApply(documents string) error {
	decoder := yaml.NewDecoder(strings.NewReader(documents))
	for {
		var o map[string]any
		if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if o == nil {
			continue
		}
		path, err := Path(o)
		if err != nil {
			return err
		}
		body, err := json.Marshal(o)
		if err != nil {
			return err
		}
		const query = "?fieldManager=test&force=true&fieldValidation=Strict"
		if _, err := c.do(http.MethodPatch, path+query, "application/apply-patch+yaml", string(body)); err != nil {
			return fmt.Errorf("apply %s: %w", path, err)
		}
	}
}

// Apply is TryApply, and ends the test if there is an error.
func (c *Client) Apply(documents string) {
	c.tb.Helper()
	must.OK(c.tb, c.TryApply(documents))
}

// clusterScoped holds the kinds without a namespace that the tests apply.
const clusterScoped = " Namespace CustomResourceDefinition ClusterRole ClusterRoleBinding "

// Path returns the path of an object.
func Path(o Object) (string, error) {
	metadata, _ := o["metadata"].(map[string]any)
	version, _ := o["apiVersion"].(string)
	kind, _ := o["kind"].(string)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	if version == "" || kind == "" || name == "" {
		return "", fmt.Errorf("object without apiVersion, kind or metadata.name: %v", o)
	}
	path := "/apis/" + version
	if !strings.Contains(version, "/") {
		path = "/api/" + version
	}
	if !strings.Contains(clusterScoped, " "+kind+" ") {
		if namespace == "" {
			return "", fmt.Errorf("%s %s without a namespace", kind, name)
		}
		path += "/namespaces/" + namespace
	}
	plural := strings.ToLower(kind) + "s"
	if strings.HasSuffix(plural, "ys") {
		plural = strings.TrimSuffix(plural, "ys") + "ies"
	}
	return path + "/" + plural + "/" + name, nil
}

// AccountToken returns a token of a service account.
func (c *Client) AccountToken(namespace, account string) string {
	c.tb.Helper()
	o, err := c.do(
		http.MethodPost, "/api/v1/namespaces/"+namespace+"/serviceaccounts/"+account+"/token", "application/json",
		`{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}`)
	must.OK(c.tb, err)
	status, _ := o["status"].(map[string]any)
	token, _ := status["token"].(string)
	if token == "" {
		c.tb.Fatalf("token request for %s/%s: %v", namespace, account, o)
	}
	return token
}

// A Table is the output of kubectl get.
type Table struct {
	ColumnDefinitions []struct {
		Name     string
		Priority int
	}
	Rows []struct{ Cells []any }
}

// Table returns the objects at a path as the columns of kubectl get.
func (c *Client) Table(path string) Table {
	c.tb.Helper()
	code, text, err := c.Request(
		http.MethodGet, path, "", "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	var table Table
	if err != nil || code != http.StatusOK || json.Unmarshal([]byte(text), &table) != nil {
		c.tb.Fatalf("GET %s as a table: %d %v %s", path, code, err, text)
	}
	return table
}
