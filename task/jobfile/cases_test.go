package jobfile

import (
	"strings"
	"testing"
	"time"
)

// noon is the wall time of these tests.
var noon = Options{Dir: "/job", FS: disk, Now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}

// Each line of a file that another scheduler's users tripped over; the letter Y is the row of the list of cases. want is part
// of what is said, "" if the file is taken. All faults must name their line.
func TestCasesOfOtherSchedulers(t *testing.T) {
	for _, c := range []struct{ row, line, want string }{
		{"Y03", "shards: 010", "write 10 (a leading 0 means octal"},
		{"Y03", "retry: {attempts: 08}", "write 8 (a leading 0"},
		{"Y03", "shards: 1e3", "write 1000"},
		{"Y03", "shards: 1_000", "write 1000"},
		{"Y03", "shards: 3.0", "write 3"},
		{"Y03", "shards: 1:30", "is not a whole number"},
		{"Y03", "shards: 0x10", "write 16"},
		{"Y03", "priority: 1e1", "write 10"},
		{"Y03", "shards: {range: 0-9, size: 0x10}", "write 16"},
		{"Y03", "resources: {cpu: 1e1}", "is not a number of processors"},
		{"Y03", "resources: {cpu: .5}", "is not a number of processors"},
		{"Y03", "schedule: {every: 1h, run_all_max: 010}", "write 10"},

		{"Y09", "timeout: 5", "5s or 5m?"},
		{"Y09", `deadline: "5"`, "5s or 5m?"},
		{"Y09", "stall_timeout: 5m", ""},
		{"Y09", "stall_timeout: 5 m", "write 5m"},
		{"Y09", "start_within: 5min", "write 5m"},
		{"Y09", "deadline: 1d", ""},
		{"Y09", "schedule: {every: 1h30}", "write 1h30m"},
		{"Y09", "schedule: {every: -5m}", "cannot be negative"},
		{"Y09", "deadline: 0", ""},
		{"Y09", "schedule: {every: 1e9h}", "is not a length of time"},

		{"Y10", `schedule: {cron: "*/0 * * * *"}`, "schedule.cron: minute"},
		{"Y10", `schedule: {cron: "60 * * * *"}`, "minute 60 is not from 0 to 59"},
		{"Y10", `schedule: {cron: "* 24 * * *"}`, "hour 24 is not from 0 to 23"},
		{"Y10", `schedule: {cron: "5-1 * * * *"}`, "minute"},
		{"Y10", `schedule: {cron: "*/100 * * * *"}`, "minute"},
		{"Y10", `schedule: {cron: "1-10/20 * * * *"}`, "minute"},
		{"Y10", `schedule: {cron: "0 0 * * 1,"}`, "weekday"},
		{"Y10", `schedule: {cron: ", * * * *"}`, "minute"},

		{"Y12", `schedule: {cron: "@reboot"}`, "@reboot"},
		{"Y12", `schedule: {cron: "@every 1d"}`, "every: 1d"},
		{"Y12", `schedule: {cron: "@every 5"}`, "@every"},
		{"Y12", `schedule: {every: 0s}`, "every"},
		{"Y12", `schedule: {every: 1ms}`, "from 1s"},
		{"Y12", `schedule: {cron: "@Hourly"}`, ""},
		{"Y12", `schedule: {cron: "@daily"}`, ""},
		{"Y12", `schedule: {cron: @daily}`, "put the text in quotes"},

		{"Y13", `schedule: {cron: "0 0 L * *"}`, "sign L"},
		{"Y13", `schedule: {cron: "0 0 15W * *"}`, "sign W"},
		{"Y13", `schedule: {cron: "0 0 * * 5#3"}`, "sign #"},
		{"Y13", `schedule: {cron: "0 0 * * 7"}`, ""},
		{"Y13", `schedule: {cron: "H H * * *"}`, "sign H"},
		{"Y13", `schedule: {cron: "* */15 * * * *"}`, "6 fields"},
		{"Y13", `schedule: {cron: "0 0 12 1 1 ? 2027"}`, "7 fields"},

		{"Y15", `schedule: {every: 1h, timezone: Europe/Pariss}`, `did you mean "Europe/Paris"?`},
		{"Y15", `schedule: {every: 1h, timezone: europe/berlin}`, "write Europe/Berlin"},
		{"Y15", `schedule: {every: 1h, timezone: PST}`, "America/Los_Angeles"},
		{"Y15", `schedule: {every: 1h, timezone: UTC+8}`, "Etc/GMT-8"},
		{"Y15", `schedule: {every: 1h, timezone: "+08:00"}`, "Etc/GMT-8"},
		{"Y15", `schedule: {every: 1h, timezone: Asia/Beijing}`, "Asia/Shanghai"},
		{"Y15", `schedule: {every: 1h, timezone: ""}`, "schedule.timezone has no value"},
		{"Y15", `schedule: {every: 1h, timezone: Local}`, "differs from machine to machine"},
		{"Y15", `schedule: {every: 1h, timezone: ../../x}`, "is not a time zone"},
		{"Y15", `schedule: {every: 1h, timezone: Etc/GMT+8}`, ""},

		{"Y17", "queue: ../x", "is not the name of a queue"},
		{"Y17", "queue: Café", "is not the name of a queue"},
		{"Y17", `shard_key: "a\eb"`, "control"},
		{"Y17", `placement: {programs: ["a\u202eb"]}`, "is not the name of a program"},

		{"Y23", "retrys: 3", `did you mean "retry"?`},
		{"Y23", "time-out: 5m", `did you mean "timeout"?`},
		{"Y23", "Name: a", `"name" is given at line 1`},
		{"Y23", "schedule: {cron: '0 3 * * *', timezoen: UTC}", `did you mean "timezone"?`},
		{"Y23", "success: {failfast: true}", `did you mean "fail_fast"?`},
		{"Y23", "broadcasts: true", `did you mean "broadcast"?`},
		{"Y23", "a_key_of_a_newer_version: 1", "a newer lanjobs may know more"},

		{"", "schedule: {at: 2026-11-29T12:00:01Z}", ""},
		{"", "schedule: {at: 2026-11-29T11:59:59Z}", "is in the past"},
		{"", "schedule: {at: 2026-11-29T13:30, timezone: Europe/Berlin}", ""},
		{"", "schedule: {at: 2026-11-29T12:30, timezone: Europe/Berlin}", "is in the past"},
		{"", "success: {at_least: all}", ""},
		{"", "success: {at_least: any}", ""},
		{"", "success: {at_least: All}", "write all"},
		{"", "concurrencyPolicy: Forbid", `here it is called "schedule.overlap"`},
	} {
		t.Run(strings.TrimSpace(c.row+" "+c.line), func(t *testing.T) {
			spec, faults := Load("job.yaml", []byte(hello+c.line+"\n"), noon)
			out := Render("job.yaml", faults)
			switch {
			case c.want == "" && spec == nil:
				t.Fatalf("refused:\n%s", out)
			case c.want == "":
				accepted(t, spec)
			case spec != nil:
				t.Fatalf("taken; want %q", c.want)
			case !strings.Contains(out, c.want) || len(faults) != 1 || faults[0].Line != 3 || faults[0].Column < 1:
				t.Errorf("want %q at one place of line 3, got:\n%s", c.want, out)
			}
		})
	}
}

// A Spec that was checked once is stored; when its one-off time has passed, that is no fault of its text.
func TestOnlyTheEdgeKnowsTheTime(t *testing.T) {
	data := []byte(hello + "schedule: {at: 2026-12-24T18:00Z}\n")
	spec, faults := Load("x", data, Options{})
	if spec == nil {
		t.Fatal(Render("x", faults))
	}
	at := time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC)
	if f := Check(spec, at); len(f) > 0 {
		t.Errorf("refused at its own time: %v", f)
	}
	if f := Check(spec, at.Add(time.Second)); len(f) != 1 || f[0].Path != "schedule.at" {
		t.Errorf("a second later: %v", f)
	}
	if f := Check(spec, time.Time{}); len(f) > 0 {
		t.Errorf("without a time: %v", f)
	}
	if again, _ := Load("x", data, Options{Now: at.Add(time.Hour)}); again != nil {
		t.Error("a file with a time in the past is taken")
	}
}
