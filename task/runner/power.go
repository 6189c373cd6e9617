package runner

import "strings"

// parsePmset reads what `pmset -g batt` of macOS prints:
//
//	Now drawing from 'Battery Power'
//	 -InternalBattery-0 (id=…)	87%; discharging; …
func parsePmset(text string) (has, on bool) {
	has = strings.Contains(text, "InternalBattery")
	return has, has && strings.Contains(text, "'Battery Power'")
}

// supply is one entry of /sys/class/power_supply.
type supply struct {
	kind   string // Mains, Battery, USB, UPS
	scope  string // Device: it feeds something else, a mouse
	online string
	status string // Discharging, Charging, Full, "Not charging"
}

// fedBy tells from its supplies whether a Linux machine has a battery, and whether it runs on it now. Where a supply from outside
// is listed, that decides: a battery beside it may discharge for a moment, or be kept at a level.
func fedBy(all []supply) (has, on bool) {
	outside, fed, draining := false, false, false
	for _, s := range all {
		switch {
		case s.scope == "Device":
		case s.kind == "Battery":
			has = true
			draining = draining || s.status == "Discharging"
		case s.kind == "Mains" || strings.HasPrefix(s.kind, "USB"):
			outside = true
			fed = fed || s.online == "1"
		}
	}
	if outside {
		return has, has && !fed
	}
	return has, has && draining
}
