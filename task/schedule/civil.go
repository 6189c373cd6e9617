package schedule

import "math/bits"

// label is a local date and time: the seconds from 1970-01-01 00:00 to it on a calendar without zones. A moment has the label
// moment + offset; a label may belong to no moment or to several.
type label int64

const (
	daySeconds  = 86400
	yearSeconds = 366 * daySeconds
	// horizon bounds every search in a calendar: 29 February is at most eight years away.
	horizon = 9 * yearSeconds
)

// civil splits a day number (0 = 1970-01-01) of the proleptic Gregorian calendar.
func civil(day int64) (year int64, month, dom int) {
	z := day + 719468 // days since 0000-03-01; a year begins in March, so that the odd day comes last
	era := floorDiv(z, 146097)
	d := z - era*146097
	y := (d - d/1460 + d/36524 - d/146096) / 365
	d -= 365*y + y/4 - y/100
	m := (5*d + 2) / 153
	dom = int(d-(153*m+2)/5) + 1
	month = int(m) + 3
	year = y + era*400
	if month > 12 {
		month, year = month-12, year+1
	}
	return year, month, dom
}

// dayNumber is the inverse of civil.
func dayNumber(year int64, month, dom int) int64 {
	if month <= 2 {
		year, month = year-1, month+12
	}
	era := floorDiv(year, 400)
	y := year - era*400
	d := int64((153*(month-3)+2)/5 + dom - 1)
	return era*146097 + y*365 + y/4 - y/100 + d - 719468
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// String writes 2026-10-25T02:30, with seconds if there are any. Labels sort as texts, as years have four digits here.
func (l label) String() string {
	day := floorDiv(int64(l), daySeconds)
	s := int64(l) - day*daySeconds
	y, m, d := civil(day)
	out := make([]byte, 0, 20)
	pair := func(sign byte, n int64) {
		out = append(out, sign, byte('0'+n/10%10), byte('0'+n%10))
	}
	out = append(out, byte('0'+y/1000%10), byte('0'+y/100%10), byte('0'+y/10%10), byte('0'+y%10))
	pair('-', int64(m))
	pair('-', int64(d))
	pair('T', s/3600)
	pair(':', s/60%60)
	if s%60 != 0 {
		pair(':', s%60)
	}
	return string(out)
}

// next is the first fitting label from from on and before until.
func (c *cron) next(from, until label) (label, bool) {
	from = label(-floorDiv(-int64(from), 60)) * 60 // up to a whole minute
	day := floorDiv(int64(from), daySeconds)
	minute := (int64(from) - day*daySeconds) / 60
	for label(day*daySeconds) < until {
		year, month, dom := civil(day)
		if c.month>>month&1 == 0 {
			day, minute = dayNumber(year, month+1, 1), 0
			continue
		}
		if c.fitsDay(day, dom) {
			if m := c.inDay(int(minute)); m >= 0 {
				l := label(day*daySeconds + int64(m)*60)
				return l, l < until
			}
		}
		day, minute = day+1, 0
	}
	return 0, false
}

// prev is the last fitting label up to upTo and not before from.
func (c *cron) prev(upTo, from label) (label, bool) {
	day := floorDiv(int64(upTo), daySeconds)
	minute := (int64(upTo) - day*daySeconds) / 60
	for label((day+1)*daySeconds) > from {
		year, month, dom := civil(day)
		if c.month>>month&1 == 0 {
			day, minute = dayNumber(year, month, 1)-1, 1439
			continue
		}
		if c.fitsDay(day, dom) {
			if m := c.inDayBack(int(minute)); m >= 0 {
				l := label(day*daySeconds + int64(m)*60)
				return l, l >= from
			}
		}
		day, minute = day-1, 1439
	}
	return 0, false
}

// fitsDay tells whether the fields for days take a day; its month has been looked at.
func (c *cron) fitsDay(day int64, dom int) bool {
	weekday := (day + 4) - floorDiv(day+4, 7)*7 // 1970-01-01 was a Thursday
	inMonth, inWeek := c.dom>>dom&1 != 0, c.weekday>>weekday&1 != 0
	if c.dom != allDays && c.weekday != allWeekdays {
		return inMonth || inWeek
	}
	return inMonth && inWeek
}

// inDay is the first fitting minute of a day from m on, -1 if there is none.
func (c *cron) inDay(m int) int {
	hour := m / 60
	if c.hour>>hour&1 != 0 {
		if rest := c.minute >> (m % 60) << (m % 60); rest != 0 {
			return hour*60 + bits.TrailingZeros64(rest)
		}
	}
	if later := c.hour >> (hour + 1) << (hour + 1); later != 0 {
		return bits.TrailingZeros64(later)*60 + bits.TrailingZeros64(c.minute)
	}
	return -1
}

// inDayBack is the last fitting minute of a day up to m, -1 if there is none.
func (c *cron) inDayBack(m int) int {
	hour := m / 60
	if c.hour>>hour&1 != 0 {
		if rest := c.minute & (2<<(m%60) - 1); rest != 0 {
			return hour*60 + bits.Len64(rest) - 1
		}
	}
	if earlier := c.hour & (1<<hour - 1); earlier != 0 {
		return (bits.Len64(earlier)-1)*60 + bits.Len64(c.minute) - 1
	}
	return -1
}
