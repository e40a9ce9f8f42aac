package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	var out strings.Builder
	r := &report{out: &out, outputs: map[result]*strings.Builder{}}
	err := r.read(strings.NewReader(strings.Join([]string{
		"go test -race ./...",
		`{"Action":"output","Package":"m/one","Test":"TestA","Output":"a.go:1: it is wrong\n"}`,
		`{"Action":"output","Package":"m/one","Test":"TestB","Output":"unseen\n"}`,
		`{"Action":"output","Package":"m/one","Test":"TestC","Output":"needs a printer\n"}`,
		`{"Action":"fail","Package":"m/one","Test":"TestA","Elapsed":1}`,
		`{"Action":"pass","Package":"m/one","Test":"TestB","Elapsed":2}`,
		`{"Action":"skip","Package":"m/one","Test":"TestC"}`,
		`{"Action":"fail","Package":"m/one","Elapsed":3}`,
		`{"Action":"pass","Package":"m/two","Test":"TestD","Elapsed":0.5}`,
		`{"Action":"pass","Package":"m/two","Elapsed":0.6}`,
		`{"Action":"skip","Package":"m/without-tests"}`,
		`{"Action":"build-fail","ImportPath":"m/three"}`,
		`{"Action":"output","Package":"m/four","Test":"TestE","Output":"panic: nil\n"}`,
		`{"Action":"fail","Package":"m/four","Elapsed":1}`,
	}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	r.summarize()
	for _, want := range []string{
		"go test -race ./...\n", "FAIL  one TestA\na.go:1: it is wrong\n", "ok    m/two 0.6 s\n",
		"    2.0 s  one TestB\n",
		"SKIP  one TestC\nneeds a printer\n", "FAIL  m/three\n", "FAIL  four TestE did not end\npanic: nil\n",
		"2 tests and subtests passed, 4 failed, 1 skipped\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if strings.Contains(out.String(), "unseen") {
		t.Error("the report has the output of a test that passed")
	}
	if t.Failed() {
		t.Log(out.String())
	}
}
