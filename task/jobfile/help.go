package jobfile

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const helpHead = `A job file is one YAML or JSON document in UTF-8, at most 256 KiB. Unknown keys are refused; x-… keys at the top level
are free, for anchors. Texts in env, labels, items and arguments are taken as written: 1.10, 010, NO and null stay that text.
Numbers are plain decimals. Lengths of time are 250ms, 5s, 5m, 1h30m, 1d, or 0; a bare number is refused.
Shown are the keys with what holds if they are not given.
`

const helpRules = `
Rules: heartbeat and stop_grace at most a third of ttl; retry.max at least retry.initial; parallelism at most shards; needs
without a cycle; names of stages unique; cron fires within 5 years, at lies ahead; shards.from names a stage that is needed,
directly or through others; shard_key differs for each shard. Given at top level, a key of the work is the default of all stages
and jobs (env is merged by name; lease, retry, placement and resources key by key; files are added), except shards, shard_key,
broadcast, parallelism and success.
In shard_key may stand: ${LANJOBS_JOB_NAME} ${LANJOBS_STAGE} ${LANJOBS_SHARD} ${LANJOBS_ITEM} ${LANJOBS_SCHEDULED_FOR}.
A schedule is made or changed by submitting the file; each firing is one job, keyed by the schedule's name and the due time.
`

// SchemaHelp is the text of "help job.yaml", made of the table that the parser uses.
func SchemaHelp() string {
	var b, unbuilt strings.Builder
	b.WriteString(helpHead)
	section := func(title string, belongs func(k key) bool) {
		fmt.Fprintf(&b, "\n%s\n", title)
		for _, k := range schema {
			if belongs(k) {
				helpKey(&b, &unbuilt, k, "", 1)
			}
		}
	}
	graph := func(k key) bool { return k.kind == kindStages || k.kind == kindJobs || k.in&inTop == 0 }
	work := func(k key) bool { return k.in == inWork }
	section("The job:", func(k key) bool { return !graph(k) && !work(k) })
	section("The work: exactly one of run, command, stages, jobs. At the top level, in a stage, or in one of jobs:", work)
	section("Several stages:", graph)
	b.WriteString(helpRules)
	if unbuilt.Len() == 0 {
		return b.String()
	}
	b.WriteString("\nNot built yet, refused by name:\n")
	width := 0
	for name := range strings.FieldsSeq(unbuilt.String()) {
		if width += len(name) + 1; width > 118 {
			b.WriteString("\n")
			width = len(name) + 1
		}
		b.WriteString(" " + name)
	}
	b.WriteString("\n")
	return b.String()
}

// helpKey writes one key, and those inside it indented.
func helpKey(b, unbuilt *strings.Builder, k key, prefix string, depth int) {
	if k.instead != "" {
		return
	}
	if k.unbuilt {
		fmt.Fprintf(unbuilt, " %s%s", prefix, k.name)
		return
	}
	text := strings.Repeat("  ", depth) + k.name + ": " + k.def
	doc := k.doc
	if k.kind == kindWord && len(k.words) > 1 && !strings.Contains(doc, k.words[len(k.words)-1]) {
		doc = strings.Join(k.words, " | ") + "; " + doc
	}
	line := fmt.Sprintf("%s%s# %s", text, strings.Repeat(" ", max(34-utf8.RuneCountInString(text), 1)), doc)
	if len(k.also) > 0 {
		if also := "  (elsewhere: " + strings.Join(k.also[:min(3, len(k.also))], ", ") + ")"; utf8.RuneCountInString(line+also) <= 130 {
			line += also
		}
	}
	b.WriteString(line + "\n")
	for _, sub := range k.sub {
		helpKey(b, unbuilt, sub, prefix+k.name+".", depth+1)
	}
}
