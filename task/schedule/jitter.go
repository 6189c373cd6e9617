package schedule

import (
	"time"

	"lanjobs/task"
)

// Jitter is the delay of an occurrence: from 0 to most, by the schedule's id and the occurrence's name alone, so that every
// leader finds the same and schedules of the same time are spread.
func Jitter(id, nominal string, most task.Millis) task.Millis {
	if most <= 0 {
		return 0
	}
	h := uint64(14695981039346656037) // FNV-1a
	for _, s := range [...]string{id, "\x00", nominal} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9 // names that differ in the last letter only shall lie far apart
	h = (h ^ h>>27) * 0x94d049bb133111eb
	h ^= h >> 31
	return task.Millis(h % (uint64(most) + 1))
}

// delayed fills in Due. It stays before the next occurrence, so that occurrences are fired in their order however large the
// jitter is.
func (c *Calendar) delayed(o Occurrence) Occurrence {
	o.Due = o.Planned
	if c.spec.Jitter <= 0 || o.Nominal == "" {
		return o
	}
	most := c.spec.Jitter
	if next, ok := c.ahead(o.Planned); ok && c.kind != kindAt {
		most = min(most, task.MillisOf(next.Planned.Sub(o.Planned))-1)
	}
	o.Due = o.Planned.Add(time.Duration(Jitter(c.id, o.Nominal, most)) * time.Millisecond)
	return o
}
