package schedule

import (
	"fmt"
	"testing"
	"time"

	"lanjobs/task"
)

func BenchmarkNext(b *testing.B) {
	for _, tt := range []struct{ expr, zone string }{
		{"* * * * *", "UTC"}, {"0 3 * * *", "UTC"}, {"0 3 * * *", "Europe/Berlin"}, {"*/15 * * * *", "America/New_York"}, {"0 0 29 2 *", "Europe/Berlin"},
	} {
		c := calendarOf(b, tt.expr, load(b, tt.zone))
		b.Run(tt.expr+" "+tt.zone, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				if _, ok := c.Next(day0.Add(time.Duration(i%100000) * time.Minute)); !ok {
					b.Fatal("none")
				}
			}
		})
	}
}

// What 10,000 schedules cost a leader in each look at them while none is due, if it keeps no due times of its own.
func BenchmarkIdle10000(b *testing.B) {
	var all []*Calendar
	var last []Occurrence
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo"}
	for i := range 10000 {
		c := compiledSpec(b, day0.AddDate(0, -1, 0), func(s *Spec) {
			s.Cron, s.Timezone = fmt.Sprintf("%d %d * * *", i%60, i/60%24), zones[i%len(zones)]
			if i%10 == 0 {
				s.Cron, s.Every = "", task.Hour
			}
		})
		o, _ := c.Prev(day0)
		all, last = append(all, c), append(last, o)
	}
	b.ReportAllocs()
	for b.Loop() {
		for i, c := range all {
			if d := c.Decide(last[i], day0); d.Settled() {
				b.Fatal(d)
			}
		}
	}
}

// What one schedule costs after a year's break.
func BenchmarkBreak(b *testing.B) {
	c := compiledSpec(b, day0, func(s *Spec) { s.Cron, s.Timezone, s.Misfire = "* * * * *", "Europe/Berlin", task.MisfireRunAll })
	for b.Loop() {
		c.Decide(Occurrence{}, day0.AddDate(1, 0, 0))
	}
}
