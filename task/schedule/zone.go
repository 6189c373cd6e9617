package schedule

import (
	_ "embed"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a machine may have no zone data of its own; here, so that tests and the binary agree

	"lanjobs/task"
)

// zoneList has the names of the zones that are built in, one a line. It is there for their spelling (a Mac would take
// europe/berlin, no other machine would) and for suggestions; a zone that is not in it may still be on the machine.
//
//go:embed zones.txt
var zoneList string

// zonesOf are names that people take for zones.
var zonesOf = map[string]string{
	"pst": "America/Los_Angeles", "pdt": "America/Los_Angeles", "pt": "America/Los_Angeles", "mdt": "America/Denver",
	"cst": "America/Chicago, or Asia/Shanghai", "cdt": "America/Chicago", "edt": "America/New_York", "et": "America/New_York",
	"bst": "Europe/London", "ist": "Asia/Kolkata, Asia/Jerusalem or Europe/Dublin", "cest": "Europe/Berlin", "mez": "Europe/Berlin",
	"mesz": "Europe/Berlin", "eest": "Europe/Athens", "msk": "Europe/Moscow", "jst": "Asia/Tokyo", "kst": "Asia/Seoul",
	"hkt": "Asia/Hong_Kong", "sgt": "Asia/Singapore", "aest": "Australia/Sydney", "nzst": "Pacific/Auckland", "z": "UTC",
	"beijing": "Asia/Shanghai", "mumbai": "Asia/Kolkata", "delhi": "Asia/Kolkata", "bangalore": "Asia/Kolkata", "san_francisco": "America/Los_Angeles",
	"seattle": "America/Los_Angeles", "boston": "America/New_York", "washington": "America/New_York", "munich": "Europe/Berlin",
	"hamburg": "Europe/Berlin", "frankfurt": "Europe/Berlin", "geneva": "Europe/Zurich", "milan": "Europe/Rome", "barcelona": "Europe/Madrid",
}

const maxZoneName = 64

// loadZone gives the zone of an IANA name. If it cannot, the message says why and the suggestion what to write.
func loadZone(name string) (zone *time.Location, message, suggestion string) {
	folded := strings.ToLower(name)
	switch {
	case name == "UTC":
		return time.UTC, "", ""
	case name == "":
		return nil, "the time zone is empty", "leave timezone out for UTC, or write one as in  timezone: Europe/Berlin"
	case folded == "local" || folded == "localtime":
		return nil, fmt.Sprintf("the time zone %q differs from machine to machine", name), "write its name, as in  timezone: Europe/Berlin"
	case len(name) > maxZoneName || strings.Trim(folded, "abcdefghijklmnopqrstuvwxyz0123456789_+-/:") != "":
		return nil, fmt.Sprintf("%.64q is not a time zone", name), "as in  timezone: Europe/Berlin"
	}
	for _, prefix := range []string{"posix/", "right/"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return nil, fmt.Sprintf("the time zone %q is not on every machine", name), "write " + rest
		}
	}
	for known := range strings.Lines(zoneList) {
		if known = strings.TrimSpace(known); known != name && strings.EqualFold(known, name) {
			return nil, fmt.Sprintf("there is no time zone %q", name), "write " + known
		}
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Sprintf("there is no time zone %q", name), suggestZone(folded)
	}
	return zone, "", ""
}

// suggestZone guesses a zone from a name in lower case.
func suggestZone(name string) string {
	if s := suggestOffset(name); s != "" {
		return s
	}
	city := strings.ReplaceAll(name[strings.LastIndexByte(name, '/')+1:], "-", "_")
	if z := zonesOf[city]; z != "" {
		return "write " + z
	}
	best, limit := "", 3
	for known := range strings.Lines(zoneList) {
		known = strings.TrimSpace(known)
		folded := strings.ToLower(known)
		if !strings.Contains(name, "/") && strings.HasSuffix(folded, "/"+city) {
			return "write " + known
		}
		if len(name) < 4 || len(folded)-len(name) > 2 || len(name)-len(folded) > 2 {
			continue
		}
		if d := task.EditDistance(folded, name); d < limit {
			best, limit = known, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "continent and city, as in  timezone: Europe/Berlin"
}

// suggestOffset answers +08:00, UTC+8 and the like, "" to all else.
func suggestOffset(name string) string {
	rest := strings.TrimPrefix(strings.TrimPrefix(name, "utc"), "gmt")
	if rest == "" || rest[0] != '+' && rest[0] != '-' {
		return ""
	}
	hours, minutes, _ := strings.Cut(rest[1:], ":")
	if len(hours) == 4 {
		hours, minutes = hours[:2], hours[2:]
	}
	n, ok := number(hours)
	if !ok || strings.Trim(minutes, "0") != "" || n > 14 || rest[0] == '-' && n > 12 {
		return "an offset is not a zone; write continent and city, as in  timezone: Asia/Kolkata"
	}
	if n == 0 {
		return "write UTC"
	}
	turned := "-"
	if rest[0] == '-' {
		turned = "+"
	}
	return fmt.Sprintf("write continent and city, or Etc/GMT%s%d for UTC%c%d without summer time (the sign is turned round there)", turned, n, rest[0], n)
}
