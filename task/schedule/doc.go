// Package schedule is the whole calendar knowledge of lanjobs (R32): which moments a schedule names, and which of them are
// to be fired now. It reads no clock, starts no goroutine and knows no cluster: a leader hands it the wall clock and what
// was fired last, which is in replicated state, and proposes what it answers.
//
//	Check     what is wrong with a Spec, all faults at once
//	Compile   a Spec with its id and its start becomes a Calendar
//	Calendar  Next, Prev, Between, NextTimes, Follow: its occurrences; Decide: what to fire now
//	Describe  a Spec in plain words
//
// # Occurrences
//
// An Occurrence has a name (Nominal) and a moment. The name of a cron occurrence is its local date and time with the zone,
// 2026-10-25T02:30[Europe/Berlin]: with the id of the schedule it is the key that makes a firing happen once in the cluster.
// It stays the same if another machine has other rules for the zone (Go takes the zone data of $ZONEINFO or of the system
// first, and what is built in where there are none). Names and moments only rise: nothing at or before the last one that was
// fired is ever fired again, by moment or by name. So a clock that is set back fires nothing twice, and a leader with older
// zone data does not repeat what another one did.
//
// Because zone data may differ, only leaders may ask a Calendar; replicated state stores its answers.
//
// # Cron
//
// Five fields: minute 0-59, hour 0-23, day of month 1-31, month 1-12 or jan-dec, weekday 0-7 or sun-sat (0 and 7 are Sunday).
// A field is a list of *, a value, a range a-b, or *, a range with a step (*/n, a-b/n). Or one of @hourly, @daily (@midnight),
// @weekly, @monthly, @yearly (@annually). If day of month and weekday are both restricted, a day that fits either counts; a
// field that has all its values (1-31) does not restrict. Everything else is refused with what to write instead: L, W, #, ?,
// H, six fields, a TZ= prefix, steps that reach no second value, ranges that run backwards.
//
// The parser is our own, 200 lines. The usual ones tell the first fault only and without its place, take */100 and an empty
// list item, crash on a bare TZ=, and decide by spelling where this package must decide by meaning; and none of them has the
// rule below.
//
// # Clock changes
//
// What a field means counts, however it is written; but only a person who writes * or */n as minute asks for a rhythm.
//
//	hour field      minute field   an hour is skipped             an hour comes twice
//	every hour      any            runs on, nothing is made up    runs in both
//	certain hours   * or */n       made up once, right after      runs in both
//	certain hours   else           made up once, right after      runs once, the first time
//
// Every hour means all 24 (*, 0-23); */2 names twelve certain hours, which run twelve times on each day of the year.
//
//   - Made up once, right after: a nominal time that does not exist is due at the first moment after the gap. Several of them,
//     and one that is due at that moment anyway, are one occurrence, which has the name of the last. `30 2 * * *` runs at 03:00
//     on the day when 02:00 becomes 03:00, as 02:30.
//   - Runs once, the first time: a local time that was reached or skipped before is never run again.
//   - Runs on, runs in both: each real minute with a fitting local time counts. `*/15 * * * *` runs every 15 minutes of real
//     time through both changes. So does `*/15 1-3 * * *`: no hour-long hole when 02:00 comes twice, and 01:45 is followed by
//     03:00 when it is skipped. `* 2 * * *` runs for two hours when 02:00 comes twice, and once, at 03:00, when it is skipped.
//     Where a zone changes by half an hour, hourly schedules have one step of half an hour more or less: local times decide.
//     Occurrences of such schedules carry the offset from UTC in their names, as a local time alone is not unique:
//     2026-10-25T02:30+01:00[Europe/Berlin].
//
// It is the rule of Vixie's cron, but for three things: 0-23 means the same as *; an hour field with a step is not a wildcard
// (0 */2 would lose its run at 02:00 in spring and have it twice in autumn); and the length of a gap does not matter (there it is three
// hours at most; here a zone that jumps over the date line skips a day, and that day's times are made up at its end).
//
// every is real time, anchored at the start of the schedule: start + n × every, n from 1, whatever zones and leaders do.
// at is one moment; as a local time it follows the same rule (right after the gap; the first time).
//
// # Misfires
//
// See Decide. Jitter delays an occurrence by a share of it that follows from the schedule's id and the occurrence's name, the
// same on every machine, and always ends before the next occurrence.
package schedule
