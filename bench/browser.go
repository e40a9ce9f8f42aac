package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/chromium"
)

// page measures the page for administrators in Chromium: how long its screens take to show what the server knows, and
// what the page costs while somebody watches it. A watch of 0 leaves the cost out.
func page(ctx context.Context, base, name string, watch time.Duration, j *job) (err error) {
	cookies, err := logIn(ctx, base)
	if err != nil {
		return err
	}
	browser, err := chromium.Start()
	if err != nil {
		return err
	}
	defer browser.Close()
	begin := time.Now()
	tab, err := browser.Open(base+"/now", "en", cookies...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tab.Close()) }()
	const rows = `document.querySelector('#screen > div:not([hidden]) tbody tr')`
	for _, step := range []struct{ row, do, until string }{
		{"first screen with graphs", "", rows + ` && document.querySelector('.plot canvas')`},
		{"filter all sessions", `{
			const words = document.querySelector('#words')
			words.value = document.querySelector('#sessions tbody .address').textContent
			words.dispatchEvent(new Event('input'))
		}`, `document.querySelectorAll('#sessions tbody tr').length === 1`},
		{"latest events", `document.querySelector('nav a[href=activity]').click()`,
			`document.querySelector('#activity tbody tr')`},
		{"events of a user", `{
			document.querySelector('#activity tbody').replaceChildren()
			document.querySelector('#find-user').value = 'user7'
			document.querySelector('.search').requestSubmit()
		}`, `document.querySelector('#activity tbody tr .user')?.textContent === 'user7'`},
	} {
		if step.do != "" {
			begin = time.Now()
			if _, err := tab.Evaluate(step.do); err != nil {
				return err
			}
		}
		if err := tab.Wait(step.until); err != nil {
			return fmt.Errorf("%s: %w", step.row, err)
		}
		j.report(amount(name+", page: "+step.row, "ms"), float64(time.Since(begin).Microseconds())/1000)
	}
	if watch == 0 {
		return nil
	}
	return cost(ctx, tab, name, watch, j)
}

// logIn returns the cookie of an administrator.
func logIn(ctx context.Context, base string) ([]*http.Cookie, error) {
	form := url.Values{"user": {userAndPassword}, "password": {userAndPassword}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/login", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		return nil, fmt.Errorf("login of the administrator: %s", response.Status)
	}
	return response.Cookies(), nil
}

// cost measures the processor time and the memory of the page while it shows the changes of the sessions.
func cost(ctx context.Context, tab *chromium.Tab, name string, watch time.Duration, j *job) error {
	if _, err := tab.Evaluate(`document.querySelector('nav a[href=now]').click()`); err != nil {
		return err
	}
	if err := tab.Ask("Performance.enable", nil, nil); err != nil {
		return err
	}
	before, err := metrics(tab)
	if err != nil {
		return err
	}
	select {
	case <-time.After(watch):
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := tab.Ask("HeapProfiler.collectGarbage", nil, nil); err != nil {
		return err
	}
	after, err := metrics(tab)
	if err != nil {
		return err
	}
	j.report(amount(name+", page: processor time", "%"),
		100*(after["TaskDuration"]-before["TaskDuration"])/(after["Timestamp"]-before["Timestamp"]))
	j.report(amount(name+", page: memory of the script", "MiB"), after["JSHeapUsedSize"]/(1<<20))
	return nil
}

// metrics returns the metrics of the page by name.
func metrics(tab *chromium.Tab) (map[string]float64, error) {
	var response struct {
		Metrics []struct {
			Name  string
			Value json.Number
		}
	}
	if err := tab.Ask("Performance.getMetrics", nil, &response); err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for _, m := range response.Metrics {
		value, err := m.Value.Float64()
		if err != nil {
			return nil, err
		}
		values[m.Name] = value
	}
	return values, nil
}
