package task

// Level is how grave a finding is.
type Level string

// The levels.
const (
	LevelOK      Level = "ok"
	LevelWarn    Level = "warn"
	LevelBad     Level = "bad"
	LevelUnknown Level = "unknown" // this system does not tell
)

// Finding is what one check found.
type Finding struct {
	Check string `json:"check"`
	Level Level  `json:"level"`
	Text  string `json:"text"`
	Fix   string `json:"fix,omitempty"` // what to type, or to do
}

// DoctorView is the checks of one machine.
type DoctorView struct {
	Node     NodeID    `json:"node,omitempty"` // "" = no node runs there
	Name     string    `json:"name"`
	Silent   bool      `json:"silent,omitempty"` // it did not answer: nothing is known
	Why      string    `json:"why,omitempty"`    // of that
	Findings []Finding `json:"findings"`
}

// Count is how many findings are of a level.
func (v *DoctorView) Count(l Level) (n int) {
	for _, f := range v.Findings {
		if f.Level == l {
			n++
		}
	}
	return n
}
