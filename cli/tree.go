package cli

// tree is every command there is. Help, completion and the parser are made from it.
func tree() *group {
	return &group{
		name: "lanjobs", short: "run jobs on the machines of a small network",
		commands: []*command{
			runRow(), submitRow(), lsRow(), showRow(), logsRow(), eventsRow(), cancelRow(), retryRow(), pauseRow(), resumeRow(), priorityRow(),
			initRow(), joinRow(), leaveRow(), statusRow(), serveRow(), simulateRow(),
			recoverRow(), helpRow(), completionRow(), versionRow(), completeRow(),
			later("approve", "pairing by a code", `Use a token instead: lanjobs token create`),
			later("alerts", "alerts and where they are sent", `lanjobs status and lanjobs events show what is wrong.`),
			later("ui", "the dashboard", `lanjobs status --watch shows the cluster.`),
			later("service", "start with the machine", `Let your service manager run: lanjobs serve`),
			later("login", "access from other users and machines", ""),
			later("logout", "access from other users and machines", ""),
			later("doctor", "checks of a machine and its network", ""),
			later("man", "the manual page", `lanjobs help and lanjobs COMMAND --help say the same.`),
		},
		groups: []*group{tokenGroup(), nodeGroup(), scheduleGroup(), queueGroup(), backupGroup(), taskGroup()},
	}
}

// sections are the headings of the program's help, with the commands in the order in which a person meets them.
var sections = []struct {
	title string
	names []string
}{
	{"start", []string{"init", "join", "token", "leave"}},
	{"jobs", []string{"run", "submit", "ls", "show", "logs", "cancel", "retry", "pause", "resume", "priority", "schedule", "queue"}},
	{"cluster", []string{"status", "node", "events", "backup"}},
	{"system", []string{"serve", "task"}},
	{"more", []string{"simulate", "recover", "help", "completion", "version"}},
}
