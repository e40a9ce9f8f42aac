package driver

import "time"

const (
	// growth is how many times as many streams are tried at once. To double them would take twice as many trials, and a large
	// object on a distant server is here in the meantime.
	growth = 4

	// reward is how many times as fast the transfer must then be.
	reward = 1.3

	// starving is the share of its time from which on a transfer waits for S3 rather than for its client, and fed the share up to
	// which it has more streams than its client needs.
	starving = 0.5
	fed      = 0.05

	// held is the share for an upload. Parts are no more than its client fills, so that it can have what a reward takes at least.
	held = 1 - 1/reward

	// proofRounds is how often as many parts as are under way must be answered before a width that was guessed is narrowed, to see whether
	// it is worth it: most uploads end before, and to the others it is a small part.
	proofRounds = 16

	// firstMeasure is how long a transfer is watched before it opens a second stream, and firstBytes what must have come by then:
	// whoever reads no more than the beginning of a file costs one request.
	firstMeasure = 30 * time.Millisecond
	firstBytes   = 1 << 20

	// measure is how long what a change brings is watched, and settling how long after the change: at least so long, and as long as
	// S3 takes to answer.
	measure  = 50 * time.Millisecond
	settling = 5 * time.Millisecond

	// memoryRest is how long a transfer for which there was no memory does not ask for it again.
	memoryRest = 500 * time.Millisecond
)

// A reading is what is known of a transfer at a time.
type reading struct {
	at      time.Time
	waited  time.Duration // for S3
	own     int64         // bytes that were moved by the transfer
	all     int64         // bytes that were moved by all transfers of the route, in its direction
	streams int           // that are open

	wider int           // streams to be tried next
	least int64         // bytes that must be moved between two readings to compare them
	apart time.Duration // that two readings must be
}

// since is how fast bytes were moved since an earlier reading.
func (r reading) since(from reading) speeds {
	elapsed := r.at.Sub(from.at).Seconds()
	return speeds{own: float64(r.own-from.own) / elapsed, all: float64(r.all-from.all) / elapsed}
}

// speeds are in bytes a second.
type speeds struct{ own, all float64 }

// reward tells whether more streams have made the speeds these. They must be more for all transfers of the route together, because one
// can also become faster by making others slower. In an experiment they must be as much more: from then on the others do the same.
func (s speeds) reward(now speeds, experiment bool) bool {
	if experiment && now.all < reward*s.all {
		return false
	}
	return now.own >= reward*s.own && now.all-s.all >= (now.own-s.own)/2
}

// A pace decides how many streams a transfer is worth. It goes by what it sees: a transfer that waits for S3 most of the time tries
// more, and keeps them if more bytes are moved by it.
//
// The streams of a download bring bytes one by one. Those of uploads are parts, which count when they are answered, as a whole: so they
// must be watched until all have been. Those that a pace allows and nobody fills cost nothing.
type pace struct {
	lesson  *lesson
	most    int
	latency time.Duration // of the first answer, or of a part
	grain   int64         // bytes of a part, 0 for a download
	single  bool          // it is that of one upload
	width   int           // streams that it wants

	begun reading   // when it started
	from  reading   // what it compares with; the zero value until a change has settled
	next  time.Time // when it looks again
	trial *trial    // nil while no change is judged
}

// A trial is a change to more streams, or to fewer.
type trial struct {
	begin      reading
	due        time.Time // when the first part could have come of what the trial brings
	width      int       // before
	speeds     speeds    // before
	experiment bool      // nobody knows yet whether the route rewards it
}

// start begins with one stream, whose first bytes have come.
func (p *pace) start(r reading) {
	p.stop()
	p.width, p.begun, p.from, p.next = 1, r, r, r.at.Add(firstMeasure)
}

// look changes width when it is time to.
func (p *pace) look(r reading) {
	switch {
	case p.shown(r):
		p.succeed()
		p.watch(r)
		return
	case r.at.Before(p.next) || r.own < firstBytes:
		return
	case p.from.at.IsZero():
		p.watch(r)
		return
	case r.own-p.from.own < r.least || r.at.Sub(p.from.at) < r.apart:
		return
	}
	now := r.since(p.from)
	waiting := (r.waited - p.from.waited).Seconds() / r.at.Sub(p.from.at).Seconds()
	switch {
	case r.streams < p.width && p.grain > 0 && p.trial == nil: // what nobody uses costs nothing
	case r.streams < p.width: // there was no memory for more, or clients have not sent it, which says nothing of the route
		p.rest(r, max(r.streams, 1))
		return
	case p.trial != nil:
		p.judge(r, now)
	case p.unproven(r):
		p.trial = &trial{width: p.width, speeds: now}
		p.change(r, max(p.width/growth, 1))
		return
	case waiting <= fed && p.width > 1 && p.grain == 0:
		p.change(r, p.width-max(p.width/growth, 1))
		return
	}
	if waiting >= p.patience() {
		if wider, experiment := p.lesson.try(r.at, p.width, r.wider, p.most); wider > p.width {
			p.trial = &trial{begin: r, due: r.at.Add(p.latency), width: p.width, speeds: now, experiment: experiment}
			p.change(r, wider)
			return
		}
	}
	p.watch(r)
}

// patience is the share of time up to which waiting for S3 is no reason to try more.
func (p *pace) patience() float64 {
	if p.grain > 0 {
		return held
	}
	return starving
}

// unproven tells whether it is time to see whether the width of an upload is worth it, which nobody knows.
func (p *pace) unproven(r reading) bool {
	return p.grain > 0 && p.width > 1 && p.lesson.isGuess() && r.own-p.begun.own >= proofRounds*r.least
}

// shown tells whether the trial of a single upload has shown its worth, although it may not have settled. The last part that was answered
// may have come together with the one after it.
func (p *pace) shown(r reading) bool {
	if !p.single || p.trial == nil || p.width < p.trial.width || r.at.Before(p.trial.due) {
		return false
	}
	r.own -= p.grain
	r.all -= p.grain
	return p.trial.speeds.reward(r.since(p.trial.begin), p.trial.experiment)
}

// judge ends a trial.
func (p *pace) judge(r reading, now speeds) {
	narrow, wide := p.trial.speeds, now
	if p.width < p.trial.width {
		narrow, wide = wide, narrow
	}
	if narrow.reward(wide, p.trial.experiment) {
		p.width = max(p.width, p.trial.width)
		p.succeed()
		return
	}
	p.width = min(p.width, p.trial.width)
	p.lesson.failed(r.at, p.width)
	p.stop()
}

// succeed ends a trial that was worth it.
func (p *pace) succeed() {
	p.lesson.rewarded(p.width)
	p.stop()
}

// end ends a transfer. That a trial was worth it may have shown by now; that it was not has not.
func (p *pace) end(r reading) {
	switch {
	case p.shown(r):
		p.succeed()
	case p.trial != nil:
		p.width = p.trial.width
		p.stop()
	}
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
func (p *pace) stop() { p.trial = nil }
