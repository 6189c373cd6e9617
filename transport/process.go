package transport

// ProcessView is the node's process, for who wants to run it in another way: as a service, or by a newer program.
type ProcessView struct {
	PID     int      `json:"pid"`
	Exe     string   `json:"program"`
	Version string   `json:"version"`
	DataDir string   `json:"data_dir"` // absolute
	Service bool     `json:"service"`  // a service manager runs it, and starts it again with the machine
	Flags   []string `json:"flags"`    // of serve that make it what it is; no address is among them
}
