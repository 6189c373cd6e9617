package cli

// tree is every command there is. Help, completion and the parser are made from it.
func tree() *group {
	return &group{
		name: "lanjobs", short: "run jobs on the machines of a small network",
		commands: []*command{
			runRow(), submitRow(), lsRow(), showRow(), logsRow(), eventsRow(), cancelRow(), retryRow(), pauseRow(), resumeRow(), priorityRow(),
			initRow(), joinRow(), approveRow(), leaveRow(), statusRow(), doctorRow(), serveRow(), simulateRow(), loginRow(), logoutRow(),
			recoverRow(), helpRow(), completionRow(), manRow(), versionRow(), completeRow(),
			later("alerts", "alerts and where they are sent", `lanjobs status and lanjobs events show what is wrong.`),
			later("ui", "the dashboard", `lanjobs status --watch shows the cluster.`),
		},
		groups: []*group{tokenGroup(), clientGroup(), nodeGroup(), serviceGroup(), scheduleGroup(), queueGroup(), backupGroup(), taskGroup()},
	}
}

// sections are the headings of the program's help, with the commands in the order in which a person meets them.
var sections = []struct {
	title string
	names []string
}{
	{"start", []string{"init", "join", "approve", "token", "leave"}},
	{"jobs", []string{"run", "submit", "ls", "show", "logs", "cancel", "retry", "pause", "resume", "priority", "schedule", "queue"}},
	{"cluster", []string{"status", "node", "events", "doctor", "client", "backup"}},
	{"system", []string{"serve", "service", "login", "logout", "task"}},
	{"more", []string{"simulate", "recover", "help", "completion", "man", "version"}},
}
