package driver

import "time"

const (
	// growth is how many times as many streams are tried at once. To double them would take twice as many trials, and a large
	// object on a distant server is here in the meantime.
	growth = 4

	// reward is how many times as fast the download must then be.
	reward = 1.3

	// starving is the share of its time from which on a download waits for S3 rather than for its client, and fed the share up to
	// which it has more streams than its client needs.
	starving = 0.5
	fed      = 0.05

	// firstMeasure is how long a download is watched before it opens a second stream, and firstBytes what must have come by then:
	// whoever reads no more than the beginning of a file costs one request.
	firstMeasure = 30 * time.Millisecond
	firstBytes   = 1 << 20

	// measure is how long what a change brings is watched, and settling how long after the change: at least so long, and as long as
	// S3 takes to answer.
	measure  = 50 * time.Millisecond
	settling = 5 * time.Millisecond

	// memoryRest is how long a download for which there was no memory does not ask for it again.
	memoryRest = 500 * time.Millisecond
)

// A reading is what is known of a download at a time.
type reading struct {
	at      time.Time
	waited  time.Duration // for S3
	own     int64         // bytes that have come to the download
	all     int64         // bytes that have come to all downloads of the route
	streams int           // that are open
}

// speeds are in bytes a second.
type speeds struct{ own, all float64 }

// A pace decides how many streams a download is worth. It goes by what it sees: a download that waits for S3 most of the time tries
// more, and keeps them if more bytes come by it. These must be more for all downloads of the route together, because one can also
// become faster by making others slower.
type pace struct {
	route   *Route
	most    int
	latency time.Duration // of the first answer
	width   int           // streams that it wants

	from  reading   // what it compares with; the zero value until a change has settled
	next  time.Time // when it looks again
	trial *trial    // nil while no change is judged
}

// A trial is a change to more streams.
type trial struct {
	width      int    // before
	speeds     speeds // before
	experiment bool   // nobody knows yet whether the route rewards it
}

// start begins with one stream, whose first bytes have come.
func (p *pace) start(r reading) {
	p.width, p.from, p.next = 1, r, r.at.Add(firstMeasure)
}

// look changes width when it is time to.
func (p *pace) look(r reading) {
	switch {
	case r.at.Before(p.next) || r.own < firstBytes:
		return
	case p.from.at.IsZero():
		p.watch(r)
		return
	}
	elapsed := r.at.Sub(p.from.at).Seconds()
	now := speeds{own: float64(r.own-p.from.own) / elapsed, all: float64(r.all-p.from.all) / elapsed}
	waiting := (r.waited - p.from.waited).Seconds() / elapsed
	switch {
	case r.streams < p.width: // there was no memory for more, which says nothing of the route
		p.rest(r, max(r.streams, 1))
		return
	case p.trial != nil:
		p.judge(r, now)
	case waiting <= fed && p.width > 1:
		p.change(r, p.width-max(p.width/growth, 1))
		return
	}
	if waiting >= starving {
		if wider, experiment := p.route.downloads.try(r.at, p.width, p.most); wider > p.width {
			p.trial = &trial{width: p.width, speeds: now, experiment: experiment}
			p.change(r, wider)
			return
		}
	}
	p.watch(r)
}

// judge ends a trial.
func (p *pace) judge(r reading, now speeds) {
	before := p.trial.speeds
	if now.own >= reward*before.own && now.all-before.all >= (now.own-before.own)/2 {
		p.route.downloads.rewarded(p.width)
	} else {
		p.width = p.trial.width
		p.route.downloads.failed(r.at, p.width)
	}
	p.stop()
}

// change sets the width and lets that settle.
func (p *pace) change(r reading, width int) {
	p.width, p.from = width, reading{}
	p.next = r.at.Add(max(settling, p.latency+p.latency/growth))
}

// watch begins to measure.
func (p *pace) watch(r reading) {
	p.from, p.next = r, r.at.Add(max(measure, p.latency))
}

// rest gives up more streams for a while, because there is no memory for them.
func (p *pace) rest(r reading, width int) {
	p.stop()
	p.width, p.from, p.next = width, reading{}, r.at.Add(memoryRest)
}

// stop ends a trial without a judgement.
func (p *pace) stop() {
	if p.trial != nil && p.trial.experiment {
		p.route.downloads.tried()
	}
	p.trial = nil
}
