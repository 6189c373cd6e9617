package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"lanjobs/node"
	"lanjobs/task"
	"lanjobs/task/jobfile"
)

// quickSpec makes a job of a command. It goes through the job file's own reader, so that the same defaults and rules hold.
func (c *call) quickSpec() (*task.Spec, error) {
	file, err := c.quickFile()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(file)
	if err != nil {
		return nil, err
	}
	set, err := setPairs(c.path, c.flags.StringSlice("set"))
	if err != nil {
		return nil, err
	}
	spec, faults := jobfile.Load("run", text, jobfile.Options{Dir: c.dir, FS: os.DirFS, Set: set, Now: c.clock.Wall()})
	if len(faults) > 0 {
		// The places of a file that nobody wrote say nothing.
		var words []string
		for _, f := range faults {
			words = append(words, sentence(f.Message))
		}
		return nil, usage(c.path, "%s", strings.Join(words, "\n"+indent))
	}
	return spec, nil
}

func (c *call) quickFile() (map[string]any, error) {
	words, shards, each := c.after, c.flags.Int("shards"), c.flags.String("each")
	file := map[string]any{"name": quickName(words[0])}
	switch {
	case each != "" && c.flags.IsSet("shards"):
		return nil, usage(c.path, "--each and --shards exclude each other: --each makes a shard per file.")
	case each != "":
		file["shards"] = map[string]any{"files": []string{each}}
		words = placeholders(words)
	case c.flags.IsSet("shards") && (shards < 1 || shards > task.MaxShards):
		return nil, usage(c.path, "--shards %d is not from 1 to %d.", shards, task.MaxShards)
	case c.flags.IsSet("shards"):
		file["shards"] = shards
	}
	file["command"] = words
	require, err := quickRequire(c.path, c.flags.String("require"), c.flags.String("on"))
	if err != nil {
		return nil, err
	}
	if len(require) > 0 {
		file["placement"] = map[string]any{"require": require}
	}
	dir := c.dir
	if c.flags.IsSet("workdir") {
		dir = c.flags.String("workdir")
		if dir != "" {
			dir = c.inDir(dir)
		}
	}
	file["workdir"] = dir
	return file, nil
}

func quickRequire(path, selector, on string) ([]string, error) {
	if _, err := parseSelector(selector); err != nil {
		return nil, usage(path, "--require: %v", err)
	}
	require := splitOutsideParens(selector)
	if on != "" {
		require = append(require, "node="+on)
	}
	return require, nil
}

// quickName calls a job after its program.
func quickName(program string) string {
	base := filepath.Base(program)
	return node.CleanName(strings.TrimSuffix(base, filepath.Ext(base)))
}

// placeholders puts the variables of a task in the place of GNU parallel's strings. Each word stays one argument: a file
// name never becomes script text. Without any, the file is the last argument, as there.
func placeholders(words []string) []string {
	out := make([]string, len(words))
	found := false
	for i, w := range words {
		out[i] = placeholderStrings.Replace(w)
		found = found || out[i] != w
	}
	if !found {
		out = append(out, placeholderStrings.Replace("{}"))
	}
	return out
}

var placeholderStrings = strings.NewReplacer(
	"{}", "${LANJOBS_ITEM}",
	"{.}", "${LANJOBS_ITEM_DIR}/${LANJOBS_ITEM_STEM}",
	"{/}", "${LANJOBS_ITEM_NAME}",
	"{/.}", "${LANJOBS_ITEM_STEM}",
	"{//}", "${LANJOBS_ITEM_DIR}",
	"{#}", "${LANJOBS_SHARD}",
)
