package schedule

import (
	"fmt"
	"strings"
)

// cron is a cron expression: for each field the set of its values, as bits.
type cron struct {
	minute, hour, dom, month, weekday uint64
	// rhythm: the minutes are written as * or */n. The field asks for a run every n minutes, not at certain ones.
	rhythm bool
}

var (
	allHours    = fields[1].all()
	allDays     = fields[2].all()
	allMonths   = fields[3].all()
	allWeekdays = fields[4].all()
)

// runsOn: skipped local times are not made up, as the next hour comes at once.
func (c *cron) runsOn() bool { return c.hour == allHours }

// once: a local time that comes twice counts the first time only.
func (c *cron) once() bool { return c.hour != allHours && !c.rhythm }

var macros = []struct{ name, fields string }{
	{"@hourly", "0 * * * *"}, {"@daily", "0 0 * * *"}, {"@midnight", "0 0 * * *"}, {"@weekly", "0 0 * * 0"},
	{"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"},
}

// parseCron reads an expression and says what is wrong with it, all faults at once. The result counts only if there are none.
func parseCron(text string, say func(message, suggestion string)) cron {
	if len(text) > MaxExpression {
		say(fmt.Sprintf("it is longer than %d bytes", MaxExpression), "ranges and steps are shorter than lists: 0-30/5")
		return cron{}
	}
	text, ok := expandMacro(strings.TrimSpace(text), say)
	if !ok {
		return cron{}
	}
	parts := strings.Fields(text)
	if len(parts) != len(fields) {
		say(countFields(parts))
		return cron{}
	}
	var sets [5]uint64
	var rhythms [5]bool
	for i := range fields {
		sets[i], rhythms[i] = fields[i].parse(parts[i], say)
	}
	return cron{minute: sets[0], hour: sets[1], dom: sets[2], month: sets[3], weekday: sets[4], rhythm: rhythms[0]}
}

// expandMacro turns @daily into fields, and refuses what stands in the place of fields elsewhere.
func expandMacro(text string, say func(message, suggestion string)) (string, bool) {
	upper := strings.ToUpper(text)
	if strings.HasPrefix(upper, "TZ=") || strings.HasPrefix(upper, "CRON_TZ=") {
		_, zone, _ := strings.Cut(text, "=")
		zone, rest, _ := strings.Cut(zone, " ")
		if zone == "" {
			zone = "Europe/Berlin"
		}
		suggestion := "write  timezone: " + zone
		if rest = strings.TrimSpace(rest); rest != "" {
			suggestion += fmt.Sprintf("  and  cron: %q", rest)
		}
		say("the time zone does not belong into the expression", suggestion)
		return "", false
	}
	if !strings.HasPrefix(text, "@") {
		return text, true
	}
	word, rest, _ := strings.Cut(upper, " ")
	for _, m := range macros {
		if strings.EqualFold(m.name, text) {
			return m.fields, true
		}
	}
	switch word {
	case "@EVERY":
		example := strings.ToLower(strings.TrimSpace(rest))
		if example == "" || example[0] < '1' || example[0] > '9' {
			example = "5m"
		}
		say("@every is not a cron expression", "write  every: "+example+"  instead of cron")
	case "@REBOOT":
		say("@reboot is not known: a cluster does not restart with one of its machines", "start the job from the machine's own service manager")
	default:
		say(fmt.Sprintf("%q is not known", text), "one of @hourly, @daily, @weekly, @monthly, @yearly")
	}
	return "", false
}

// countFields says what is wrong with a number of fields that is not five. More are never read as five.
func countFields(parts []string) (message, suggestion string) {
	const five = "minute, hour, day of month, month, weekday"
	switch n := len(parts); {
	case n == 0:
		return "it is empty", `as in "0 3 * * *" for 03:00 on every day`
	case n == 6:
		return "it has 6 fields, not 5 (" + five + "); there are no seconds and no years",
			fmt.Sprintf("without seconds: %q; for less than a minute use  every: 10s", strings.Join(parts[1:], " "))
	case n == 7:
		return "it has 7 fields, not 5 (" + five + "); there are no seconds and no years",
			fmt.Sprintf("without seconds and year: %q", strings.Join(parts[1:6], " "))
	case n < 5:
		return fmt.Sprintf("it has %d of 5 fields (%s)", n, five),
			fmt.Sprintf("write * for any: %q", strings.Join(parts, " ")+strings.Repeat(" *", 5-n))
	default:
		return fmt.Sprintf("it has %d fields, not 5 (%s)", n, five), ""
	}
}

// String writes the expression in one form for all spellings; parsing it gives the same occurrences.
func (c *cron) String() string {
	return fields[0].format(c.minute, c.rhythm) + " " + fields[1].format(c.hour, false) + " " + fields[2].format(c.dom, false) + " " +
		fields[3].format(c.month, false) + " " + fields[4].format(c.weekday, false)
}
