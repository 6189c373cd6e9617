package jobfile

import (
	"strings"

	"lanjobs/task"
	"lanjobs/task/schedule"
)

// schedule fills in when the job runs, nil for now. What its texts mean is for the rules, which ask package schedule.
func (l *loader) schedule(s *scope) *task.Schedule {
	if l.places["schedule"] == nil {
		return nil
	}
	d := schedule.Default()
	for _, k := range []string{"cron", "every", "at", "timezone"} {
		path := "schedule." + k
		if v, ok := s.values[path]; ok && (v == "" || v == task.Millis(0)) {
			l.faultAt(l.places[path], path, path+" has no value", like(find(scheduleKeys, k)))
		}
	}
	return &task.Schedule{
		Cron:         get(s, "schedule.cron", ""),
		Every:        get(s, "schedule.every", task.Millis(0)),
		At:           get(s, "schedule.at", ""),
		Timezone:     get(s, "schedule.timezone", d.Timezone),
		Overlap:      task.Overlap(get(s, "schedule.overlap", string(d.Overlap))),
		Misfire:      task.Misfire(get(s, "schedule.misfire", string(d.Misfire))),
		MisfireGrace: get(s, "schedule.misfire_grace", d.MisfireGrace),
		RunAllMax:    get(s, "schedule.run_all_max", d.RunAllMax),
		Jitter:       get(s, "schedule.jitter", task.Millis(0)),
		Paused:       get(s, "schedule.paused", false),
		Wake:         strings.Join(get(s, "schedule.wake", []string(nil)), ","),
	}
}
