package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
)

func told(faults []task.Fault) string {
	var out []string
	for _, f := range faults {
		out = append(out, fmt.Sprintf("%s: %s -> %s", f.Path, f.Message, f.Suggestion))
	}
	return strings.Join(out, "\n")
}

// C51, Y10, Y12, Y13: what is refused, and the words that a person needs to see.
func TestExpressionsThatAreRefused(t *testing.T) {
	for expr, want := range map[string][]string{
		"*/0 * * * *":                           {`minute "*/0"`, "from 1 on"},
		"60 * * * *":                            {"minute 60 is not from 0 to 59", "write 0"},
		"* 24 * * *":                            {"hour 24 is not from 0 to 23", "write 0"},
		"0 0 0 * *":                             {"day of month 0 is not from 1 to 31"},
		"0 0 * 13 *":                            {"month 13 is not from 1 to 12"},
		"0 0 * * 8":                             {"weekday 8 is not from 0 to 7"},
		"5-1 * * * *":                           {`minute "5-1" runs backwards`, "write 5-59,0-1"},
		"0 0 * * fri-mon":                       {`weekday "fri-mon" runs backwards`, "write 5-6,0-1"},
		"*/100 * * * *":                         {`minute "*/100"`, "only 0 would be left", "a step up to 59"},
		"0 */24 * * *":                          {`hour "*/24"`, "a step up to 23"},
		"1-10/20 * * * *":                       {`minute "1-10/20"`, "write 1, or a step up to 9"},
		"5/10 * * * *":                          {"a step but no range", "write 5-59/10"},
		"0 0 * * 1,":                            {`weekday "1,"`, "remove the comma"},
		", * * * *":                             {`minute ","`, "remove the comma"},
		"0 0 31 2 *":                            {"does not fire within 5 years", "28"},
		"0 0 31 4 *":                            {"does not fire within 5 years"},
		"0 0 30-31 feb *":                       {"does not fire within 5 years"},
		"TZ=Europe/Berlin":                      {"time zone does not belong", "timezone: Europe/Berlin"},
		"CRON_TZ=Asia/Tokyo 0 3 * * *":          {"timezone: Asia/Tokyo", `cron: "0 3 * * *"`},
		"TZ=":                                   {"timezone: Europe/Berlin"},
		"@every 5m":                             {"every: 5m  instead of cron"},
		"@every -5m":                            {"every: 5m  instead"},
		"@every":                                {"every: 5m"},
		"@reboot":                               {"@reboot is not known"},
		"@dayly":                                {"one of @hourly"},
		"@daily x":                              {"one of @hourly"},
		"0 0 L * *":                             {`day of month "L"`, "sign L", "28-31"},
		"0 0 * * 5L":                            {`weekday "5L"`, "sign L"},
		"0 0 15W * *":                           {`day of month "15W"`, "sign W", "mon-fri"},
		"0 0 * * 5#3":                           {`weekday "5#3"`, "sign #"},
		"0 0 ? * mon":                           {`day of month "?"`, "write *"},
		"H H * * *":                             {`minute "H"`, "jitter: 10m", `hour "H"`},
		"* */15 * * * *":                        {"6 fields, not 5", `without seconds: "*/15 * * * *"`, "every: 10s"},
		"0 0 3 * * * 2027":                      {"7 fields, not 5", `"0 3 * * *"`},
		"1 2 3 4 5 6 7 8":                       {"8 fields, not 5"},
		"0 3 *":                                 {"3 of 5 fields", `"0 3 * * *"`},
		"  ":                                    {"it is empty"},
		"0 3 * * tues":                          {`weekday "tues"`, "write tue"},
		"0 3 * 'jan' *":                         {`month "'jan'" is not understood`},
		"010 * * * *":                           {`minute "010" is not understood`},
		"-5 * * * *":                            {`minute "-5"`},
		"1e3 0x1 * * *":                         {`minute "1e3"`, `hour "0x1"`},
		"*/5/2 * * * *":                         {`the step "5/2"`},
		"61 25 32 13 9":                         {"minute 61", "hour 25", "day of month 32", "month 13", "weekday 9"},
		strings.Repeat("1,", 400) + "1 * * * *": {"longer than 512 bytes"},
		"0 3 * * \x00\x1b[31m":                  {`"\x00\x1b[31m"`},
	} {
		spec := Default()
		spec.Cron = expr
		faults := Check(&spec, day0)
		all := told(faults)
		if len(faults) == 0 {
			t.Errorf("%q is taken as %s", expr, Describe(spec))
		}
		for _, f := range faults {
			if f.Path != "schedule.cron" || strings.ContainsAny(f.Message+f.Suggestion, "\x00\x1b\n") {
				t.Errorf("%q: %+v", expr, f)
			}
		}
		for _, w := range want {
			if !strings.Contains(all, w) {
				t.Errorf("%q: %q is missing in\n%s", expr, w, all)
			}
		}
	}
}

func TestExpressionsThatAreTaken(t *testing.T) {
	for expr, want := range map[string]string{
		"0 3 * * *": "0 3 * * *", "@daily": "0 0 * * *", "@Hourly": "0 * * * *", "@weekly": "0 0 * * 0", " @monthly ": "0 0 1 * *", "@yearly": "0 0 1 1 *",
		"0 0 * * 7": "0 0 * * 0", "0 0 * * SUN": "0 0 * * 0", "0 0 * * fri-sun": "0 0 * * 0,5-6", "0 0 * * 5-7": "0 0 * * 0,5-6", "0 0 * * 7-2": "0 0 * * 0-2",
		"0 0 * * 0-7": "0 0 * * *", "0 0 1-31 1-12 sun-sat": "0 0 * * *", "00 05 * Jan,mar-MAY *": "0 5 * 1,3-5 *", "*/15 1-3 * * *": "*/15 1-3 * * *",
		"0-59/15 1-3 * * *": "0,15,30,45 1-3 * * *", "0-59 2 * * *": "* 2 * * *", "*/1 */1 */1 */1 */1": "* * * * *", "5-59/10 * * * *": "5,15,25,35,45,55 * * * *",
		"1,1,2,3,9 \t* * *  *": "1-3,9 * * * *", "*,5 * * * *": "* * * * *", "*/59 * * * *": "*/59 * * * *", "0 0 29 feb *": "0 0 29 2 *", "0 */7 * * *": "0 0,7,14,21 * * *",
	} {
		spec := Default()
		spec.Cron = expr
		if f := Check(&spec, day0); f != nil {
			t.Errorf("%q: %s", expr, told(f))
			continue
		}
		if got := calendarOf(t, expr, time.UTC).cron.String(); got != want {
			t.Errorf("%q is %q, not %q", expr, got, want)
		}
	}
}

func TestOtherFaults(t *testing.T) {
	for _, tt := range []struct {
		change func(*Spec)
		want   string
	}{
		{func(s *Spec) { s.Cron = "" }, "schedule: the schedule has no time -> give one of"},
		{func(s *Spec) { s.Every = task.Minute }, "schedule: the schedule has cron and every, of which only one"},
		{func(s *Spec) { s.Every, s.At = task.Minute, "2027-01-01T00:00" }, "cron and every and at"},
		{func(s *Spec) { s.Cron, s.Every = "", 1 }, "schedule.every: every 1ms is not from 1s"},
		{func(s *Spec) { s.Cron, s.Every = "", -5*task.Minute }, "schedule.every: every -5m is not from 1s"},
		{func(s *Spec) { s.Cron, s.Every = "", 1<<62 }, "schedule.every: every"},
		{func(s *Spec) { s.Cron, s.At = "", "2026-11-29T11:59:30" }, "is in the past: it was 30 seconds ago -> write a later time"},
		{func(s *Spec) { s.Cron, s.At = "", "2026-12-24" }, `schedule.at: at: "2026-12-24" has no time of day -> write 2026-12-24T18:00`},
		{func(s *Spec) { s.Cron, s.At = "", "18:00" }, `has no date -> as in 2026-12-24T18:00`},
		{func(s *Spec) { s.Cron, s.At = "", "tomorrow" }, `at: "tomorrow" is not a date and time -> as in`},
		{func(s *Spec) { s.Cron, s.At = "", "2027-02-30T10:00" }, `is not a date and time`},
		{func(s *Spec) { s.Timezone = "Europe/Pariss" }, `schedule.timezone: there is no time zone "Europe/Pariss" -> did you mean "Europe/Paris"?`},
		{func(s *Spec) { s.Overlap = "Forbid" }, "schedule.overlap: overlap \"Forbid\" is not known -> one of skip"},
		{func(s *Spec) { s.Misfire = "" }, "schedule.misfire: misfire \"\" is not known -> one of run_once"},
		{func(s *Spec) { s.MisfireGrace = 0 }, "schedule.misfire_grace: misfire_grace 0 is not from 30 seconds to 366 days -> to make nothing up write  misfire: skip"},
		{func(s *Spec) { s.RunAllMax = 101 }, "schedule.run_all_max: run_all_max 101 is not from 1 to 100"},
		{func(s *Spec) { s.Jitter = -1 }, "schedule.jitter: jitter -1ms is not from 0 to 1 day"},
		{func(s *Spec) { s.Cron, s.Every, s.Jitter = "", task.Minute, task.Minute }, "schedule.jitter: jitter 1 minute is not shorter than every 1 minute"},
	} {
		spec := Default()
		spec.Cron = "0 3 * * *"
		tt.change(&spec)
		if got := told(Check(&spec, day0)); !strings.Contains(got, tt.want) || strings.Contains(got, "\n") {
			t.Errorf("%+v:\n%s\nhas not %q alone", spec, got, tt.want)
		}
	}
	spec := Spec{Cron: "61 * L * *", Every: 1, Timezone: "PST", Jitter: -1}
	if got := Check(&spec, day0); len(got) != 10 {
		t.Errorf("not all faults at once: %s", told(got))
	}
	_, err := Compile(spec, "s1", day0)
	if p := task.Explain(err); !errors.Is(err, task.ErrInvalid) || len(p.Faults) != 10 || p.Detail == "" {
		t.Errorf("%+v", err)
	}
}

// A year in which 29 February is more than five years away.
func TestFiveYears(t *testing.T) {
	spec := Default()
	spec.Cron = "0 0 29 2 *"
	if f := Check(&spec, day0); f != nil {
		t.Error(told(f))
	}
	if f := Check(&spec, utc("2097-01-01 00:00")); f == nil {
		t.Error("29 February 2104 is within 5 years of 2097")
	}
}

func TestSpecOnTheWire(t *testing.T) {
	spec := Default()
	spec.Cron = "0 3 * * *"
	data, err := json.Marshal(spec)
	if want := `{"cron":"0 3 * * *","timezone":"UTC","overlap":"skip","misfire":"run_once","misfire_grace":3600000,"run_all_max":100}`; err != nil || string(data) != want {
		t.Errorf("%s %v", data, err)
	}
}
