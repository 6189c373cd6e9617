package jobfile

// The keys inside schedule (R32) and resources (R34).

var scheduleKeys = []key{
	{name: "cron", kind: kindText, in: inSub, doc: "5 fields, names, @daily; day of month and weekday both given = either", like: `cron: "0 3 * * *"`,
		also: []string{"expression", "crontab"}},
	{name: "every", kind: kindLength, in: inSub, doc: "1s-366d, counted from the submit", like: "every: 15m", also: []string{"interval", "period"}},
	{name: "at", kind: kindText, in: inSub, doc: "once: 2026-12-24T18:00 in timezone, or with its offset; not in the past", like: "at: 2026-12-24T18:00",
		also: []string{"once", "date", "run_at"}},
	{name: "timezone", kind: kindText, in: inSub, def: "UTC", doc: "IANA name. A skipped hour: first moment after; a doubled one: once", like: "timezone: Europe/Berlin",
		also: []string{"tz", "time_zone", "zone"}},
	{name: "overlap", kind: kindWord, in: inSub, def: "skip", words: []string{"skip", "queue", "replace", "allow"}, doc: "while the last one runs; queue: one waits",
		like: "overlap: skip", also: []string{"concurrencyPolicy", "concurrency"}, meant: map[string]string{"forbid": "skip", "no": "skip", "wait": "queue",
			"buffer": "queue", "bufferone": "queue", "cancel": "replace", "cancelother": "replace", "parallel": "allow", "allowall": "allow"}},
	{name: "misfire", kind: kindWord, in: inSub, def: "run_once", words: []string{"run_once", "skip", "run_all"}, doc: "missed while no leader was there",
		like: "misfire: run_once", also: []string{"catchup", "backfill"}, meant: map[string]string{"once": "run_once", "latest": "run_once", "true": "run_all",
			"all": "run_all", "false": "skip", "no": "skip", "none": "skip", "ignore": "skip"}},
	{name: "misfire_grace", kind: kindLength, in: inSub, def: "1h", doc: "older misses are dropped and audited", like: "misfire_grace: 6h",
		also: []string{"startingDeadlineSeconds", "misfire_grace_time", "catchup_window"}},
	{name: "run_all_max", kind: kindInt, in: inSub, def: "100", doc: "most misses that run_all makes up, 1-100", like: "run_all_max: 10"},
	{name: "jitter", kind: kindLength, in: inSub, def: "0", doc: "at most so much later, the same on every leader", like: "jitter: 10m",
		also: []string{"splay", "random_delay", "randomizedDelaySec"}},
	{name: "wake", kind: kindTexts, in: inSub, def: "[]", doc: "machines to wake by the network a little before each run", like: "wake: [nas]",
		also: []string{"wake_on_lan", "wol", "wakeup"}},
	{name: "paused", kind: kindBool, in: inSub, def: "false", doc: "until lanjobs schedule resume", like: "paused: true", also: []string{"suspend", "disabled"}},
}

var resourceKeys = []key{
	{name: "cpu", kind: kindCPU, in: inSub, def: "1", doc: "processors, 0.001-1024; 0.5 = half of one", like: "cpu: 0.5", also: []string{"cpus", "cores"}},
	{name: "memory", kind: kindSize, in: inSub, def: "0", doc: "512Mi, 4Gi; 0 = not counted", like: "memory: 4Gi", also: []string{"mem", "ram"}},
	{name: "gpu", in: inSub, instead: "machines are chosen by their labels: placement: {require: [gpu=true]}"},
	{name: "disk", kind: kindSize, in: inSub, def: "0", doc: "20Gi; 0 = not counted", like: "disk: 20Gi", also: []string{"storage", "ephemeral-storage"}},
}
