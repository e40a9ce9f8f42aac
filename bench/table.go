package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// A row is a measured quantity.
type row struct {
	name string
	unit string
	// speed marks a value for which more is better. The table shows it as a ratio to the first contender in
	// the same round. Other values are shown as they are.
	speed bool
}

func speed(name, unit string) row  { return row{name, unit, true} }
func amount(name, unit string) row { return row{name, unit, false} }

// A table collects values by row, contender and round.
type table struct {
	contenders []string
	rows       []row // in the order of their first values
	values     map[cell]map[int]float64
}

type cell struct{ row, contender string }

func (t *table) add(r row, contender string, round int, value float64) {
	if !slices.Contains(t.rows, r) {
		t.rows = append(t.rows, r)
	}
	if t.values == nil {
		t.values = map[cell]map[int]float64{}
	}
	c := cell{r.name, contender}
	if t.values[c] == nil {
		t.values[c] = map[int]float64{}
	}
	t.values[c][round] = value
}

// A result summarizes the rounds of a contender for a row.
type result struct {
	Contender string    `json:"contender"`
	Values    []float64 `json:"values"` // by round
	Median    float64   `json:"median"`
	// Ratio is the median of the ratios to the raw client in the same round, or 0 if the raw client has no
	// values.
	Ratio float64 `json:"ratio,omitempty"`
}

// results returns the results of a row by contender. Contenders without values are left out.
func (t *table) results(r row) map[string]result {
	all := map[string]result{}
	raw := t.values[cell{r.name, t.contenders[0]}]
	for _, contender := range t.contenders {
		var values, ratios []float64
		rounds := t.values[cell{r.name, contender}]
		for _, round := range slices.Sorted(maps.Keys(rounds)) {
			value := rounds[round]
			values = append(values, value)
			if base, found := raw[round]; found && r.speed {
				ratios = append(ratios, value/base)
			}
		}
		if len(values) > 0 {
			all[contender] = result{Contender: contender, Values: values, Median: median(values), Ratio: median(ratios)}
		}
	}
	return all
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// print writes the table in Markdown. Speeds of contenders other than the first are shown as ratios to the
// first.
func (t *table) print(w io.Writer) error {
	lines := [][]string{append([]string{"work (unit)"}, t.contenders...)}
	for _, r := range t.rows {
		line := []string{r.name + " (" + r.unit + ")"}
		results := t.results(r)
		for i, contender := range t.contenders {
			text := "-"
			switch result, found := results[contender]; {
			case !found:
			case r.speed && i > 0 && result.Ratio > 0:
				text = fmt.Sprintf("%.2f", result.Ratio)
			default:
				text = number(result.Median)
			}
			line = append(line, text)
		}
		lines = append(lines, line)
	}
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, text := range line {
			widths[i] = max(widths[i], len(text))
		}
	}
	rule := make([]string, len(widths))
	for i, width := range widths {
		rule[i] = strings.Repeat("-", width)
	}
	for _, line := range slices.Insert(lines, 1, rule) {
		for i, text := range line {
			line[i] = fmt.Sprintf("%-*s", widths[i], text)
		}
		if _, err := fmt.Fprintf(w, "| %s |\n", strings.Join(line, " | ")); err != nil {
			return err
		}
	}
	return nil
}

// number formats a value with three significant digits.
func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// printJSON writes all values.
func (t *table) printJSON(w io.Writer) error {
	type line struct {
		Work    string   `json:"work"`
		Unit    string   `json:"unit"`
		Speed   bool     `json:"speed"`
		Results []result `json:"results"`
	}
	lines := []line{}
	for _, r := range t.rows {
		l := line{Work: r.name, Unit: r.unit, Speed: r.speed}
		results := t.results(r)
		for _, contender := range t.contenders {
			if result, found := results[contender]; found {
				l.Results = append(l.Results, result)
			}
		}
		lines = append(lines, l)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(lines)
}
