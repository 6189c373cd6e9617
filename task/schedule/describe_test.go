package schedule

import (
	"testing"

	"lanjobs/task"
)

func TestDescribe(t *testing.T) {
	for expr, want := range map[string]string{
		"0 3 * * *": "every day at 03:00 Europe/Berlin", "0 6 * * mon": "every Monday at 06:00 Europe/Berlin", "* * * * *": "every minute",
		"*/15 * * * *": "every 15 minutes", "@hourly": "every hour", "30 * * * *": "every hour at minute 30", "5,35-37 * * * *": "every hour at minute 5 and 35-37",
		"0 */6 * * *": "every 6 hours Europe/Berlin", "30 */6 * * *": "every day at 00:30, 06:30, 12:30 and 18:30 Europe/Berlin",
		"*/15 1-3 * * *": "every day, every 15 minutes from 01:00 to 03:45 Europe/Berlin", "*/5 8,20 * * *": "every day, every 5 minutes in hour 8 and 20 Europe/Berlin",
		"*/10 9-17 * * 1-5": "every 10 minutes from 09:00 to 17:50 every Monday to Friday, Europe/Berlin", "0 0 1,15 * *": "on day 1 and 15 of every month at 00:00 Europe/Berlin",
		"0 0 24 12 *": "on day 24 of December at 00:00 Europe/Berlin", "0 0 13 * fri": "on day 13 of every month and every Friday at 00:00 Europe/Berlin",
		"0 12 * jan,jul *": "every day in January and July at 12:00 Europe/Berlin", "0 9 * 6-8 sat,sun": "every Sunday and Saturday in June, July and August at 09:00 Europe/Berlin",
		"1-20 3,5 * * *": "every day at minute 1-20 of hour 3 and 5 Europe/Berlin", "* 2 * * *": "every day, every minute from 02:00 to 02:59 Europe/Berlin",
		"* * * * mon": "every minute every Monday, Europe/Berlin", "61 * * * *": "not valid: 61 * * * *",
	} {
		spec := Default()
		spec.Cron, spec.Timezone = expr, "Europe/Berlin"
		if got := Describe(spec); got != want {
			t.Errorf("%q is %q, not %q", expr, got, want)
		}
	}
	for _, tt := range []struct {
		spec Spec
		want string
	}{
		{Spec{Every: 5 * task.Minute}, "every 5 minutes"}, {Spec{Every: task.Hour, Jitter: 90 * task.Second}, "every hour, up to 90 seconds later"},
		{Spec{Every: 90 * task.Minute, Paused: true}, "every 90 minutes (paused)"}, {Spec{Every: 1500}, "every 1.5s"},
		{Spec{At: "2026-12-24T18:00", Timezone: "Europe/Berlin"}, "once at 2026-12-24 18:00:00 Europe/Berlin"},
		{Spec{Cron: "0 3 * * *", Timezone: "Etc/GMT+8"}, "every day at 03:00 Etc/GMT+8 (UTC-8)"},
	} {
		spec := Default()
		spec.Every, spec.Cron, spec.At, spec.Jitter, spec.Paused = tt.spec.Every, tt.spec.Cron, tt.spec.At, tt.spec.Jitter, tt.spec.Paused
		if tt.spec.Timezone != "" {
			spec.Timezone = tt.spec.Timezone
		}
		if got := Describe(spec); got != tt.want {
			t.Errorf("%q, not %q", got, tt.want)
		}
	}
}
