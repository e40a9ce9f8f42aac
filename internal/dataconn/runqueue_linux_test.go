package dataconn

import "testing"

func TestRunQueue(t *testing.T) {
	if tasks, processors := runQueue(); tasks < 1 || processors < 1 { // this one runs
		t.Errorf("%d tasks on %d processors", tasks, processors)
	}
}

func TestRunnableTasks(t *testing.T) {
	for load, want := range map[string]int{
		"0.20 0.18 0.12 1/80 11206\n":      1,
		"31.14 25.28 20.43 28/418 7834\n":  28,
		"":                                 0,
		"0.20 0.18 0.12":                   0,
		"0.00 0.00 0.00 none of them 0 0 ": 0,
	} {
		if got := runnableTasks(load); got != want {
			t.Errorf("%q has %d, want %d", load, got, want)
		}
	}
}

func TestCountProcessors(t *testing.T) {
	for list, want := range map[string]int{"0\n": 1, "0-1\n": 2, "0-3,6,8-9\n": 7, "": 0, "\n": 0, "0-x": 0} {
		if got := countProcessors(list); got != want {
			t.Errorf("%q has %d, want %d", list, got, want)
		}
	}
}
