package cli

import (
	"embed"

	"lanjobs/task/jobfile"
)

//go:embed topics/*.txt
var topicFiles embed.FS

func topicNames() []string {
	return []string{"job.yaml", "job.schema.json", "exit-codes", "environment", "tasks", "schedules", "queues", "lost-quorum", "upgrade"}
}

// topic gives a text of help. The format of job files describes itself.
func topic(name string) (string, bool) {
	switch name {
	case "job.yaml":
		return jobfile.SchemaHelp(), true
	case "job.schema.json":
		return string(jobfile.JSONSchema()), true
	}
	text, err := topicFiles.ReadFile("topics/" + name + ".txt")
	return string(text), err == nil
}
