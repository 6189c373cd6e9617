package schedule

import (
	"math"
	"time"
)

// period is a time in which a zone keeps one offset. Moments are Unix seconds; minTime and maxTime stand for no bound.
type period struct{ start, end, offset int64 }

const (
	minTime = math.MinInt64 / 4 // far from overflow
	maxTime = math.MaxInt64 / 4
	// maxShift is longer than any change of an offset: they lie within a bit more than a day on either side of UTC.
	maxShift = 56 * 3600
)

func periodAt(zone *time.Location, moment int64) period {
	if zone == time.UTC {
		return period{minTime, maxTime, 0}
	}
	t := time.Unix(moment, 0).In(zone)
	_, offset := t.Zone()
	p := period{minTime, maxTime, int64(offset)}
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		p.start = min(start.Unix(), moment) // a walk never stands still, whatever zone data say
	}
	if !end.IsZero() {
		p.end = max(end.Unix(), moment+1)
	}
	return p
}

func (p period) first() label            { return label(p.start + p.offset) }
func (p period) last() label             { return label(p.end + p.offset) } // exclusive
func (p period) label(m int64) label     { return label(m + p.offset) }
func (p period) moment(l label) int64    { return int64(l) - p.offset }
func (p period) hasStart() bool          { return p.start > minTime }
func (p period) after(m int64) bool      { return p.start >= m }
func (p period) startsNear(m int64) bool { return m-p.start < maxShift }

// reached is the label before which all have come or were skipped when p began.
func reached(zone *time.Location, p period) label {
	high := label(minTime)
	for q := p; q.hasStart() && q.start > p.start-maxShift; {
		q = periodAt(zone, q.start-1)
		high = max(high, q.last())
	}
	return high
}

// nextCron is the first occurrence at or after a moment: its own moment and its label.
func nextCron(c *cron, zone *time.Location, from int64) (int64, label, bool) {
	p := periodAt(zone, from)
	high := label(minTime)
	if p.hasStart() && p.startsNear(from) {
		high = reached(zone, p) // else all labels from here on are later than any before p
	}
	for limit := from + horizon; ; {
		if p.hasStart() && p.after(from) && p.first() > high && !c.runsOn() {
			if l, ok := c.prev(p.first(), high); ok {
				return p.start, l, true
			}
		}
		low := p.label(max(from, p.start))
		if c.once() {
			low = max(low, high)
		}
		if l, ok := c.next(low, p.label(min(p.end, limit))); ok {
			return p.moment(l), l, true
		}
		if p.end >= limit {
			return 0, 0, false
		}
		high = max(high, p.last())
		p = periodAt(zone, p.end)
	}
}

// prevCron is the last occurrence at or before a moment: its own moment and its label.
func prevCron(c *cron, zone *time.Location, upTo int64) (int64, label, bool) {
	for at, limit := upTo, upTo-horizon; at > limit; {
		p := periodAt(zone, at)
		high := label(minTime)
		if p.hasStart() {
			high = reached(zone, p)
		}
		low := p.label(max(p.start, limit))
		if c.once() {
			low = max(low, high)
		}
		if l, ok := c.prev(p.label(at), low); ok {
			return p.moment(l), l, true
		}
		if !p.hasStart() {
			break
		}
		if p.first() > high && !c.runsOn() {
			if l, ok := c.prev(p.first(), high); ok {
				return p.start, l, true
			}
		}
		at = p.start - 1
	}
	return 0, 0, false
}

// momentOf is when a local time comes: the first time if it comes twice, the first moment after the gap if it is skipped.
func momentOf(zone *time.Location, l label) int64 {
	for at := int64(l) - maxShift; ; {
		p := periodAt(zone, at)
		if p.hasStart() && l < p.first() {
			return p.start
		}
		if l < p.last() {
			return p.moment(l)
		}
		at = p.end
	}
}
