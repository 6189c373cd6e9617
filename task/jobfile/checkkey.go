package jobfile

import (
	"fmt"
	"slices"
	"strings"

	"lanjobs/task"
)

// shardKey checks the template of a stage's shard keys (R31): known variables, and no two shards with one key by construction,
// since all but the first of them would be skipped without having run.
func (c *checker) shardKey(spec *task.Spec, i int) {
	s := &spec.Stages[i]
	key := s.ShardKey
	if key == "" {
		return
	}
	if c.text("shard_key", key, task.MaxShardKey, false); len(key) > task.MaxShardKey {
		return
	}
	uses := task.ShardKeyUses(key)
	for _, name := range uses {
		if !slices.Contains(task.ShardKeyVars, name) {
			c.fault(fmt.Sprintf("shard_key knows no variable %s", quote(name)), suggestVariable(name), "shard_key")
		}
	}
	if rest := leftover(key); rest != "" {
		c.fault(fmt.Sprintf("shard_key has %s, which is not a variable", quote(rest)), "write it as ${LANJOBS_ITEM}", "shard_key")
	}
	has := func(name string) bool { return slices.Contains(uses, name) }
	items := len(s.Items) > 0 || s.ShardsFrom != ""
	switch {
	case s.Broadcast:
		c.fault("shard_key has no meaning with broadcast: which number a machine has may change", "", "shard_key", "broadcast")
	case has("LANJOBS_ITEM") && !items:
		c.fault("shard_key uses ${LANJOBS_ITEM}, but the shards have no items", "write ${LANJOBS_SHARD}", "shard_key")
	case s.Shards != 1 && !has("LANJOBS_SHARD") && !has("LANJOBS_ITEM"):
		hint := "add ${LANJOBS_SHARD}"
		if items {
			hint = "add ${LANJOBS_ITEM}"
		}
		c.fault("shard_key is the same for all shards, so all but one would be skipped", hint, "shard_key")
	}
	if has("LANJOBS_SCHEDULED_FOR") && spec.Schedule == nil {
		c.fault("shard_key uses ${LANJOBS_SCHEDULED_FOR}, but the job has no schedule", "", "shard_key")
	}
	for j := range i {
		if spec.Stages[j].ShardKey == key && !has("LANJOBS_STAGE") {
			c.fault(fmt.Sprintf("shard_key is the same as that of the stage %s, whose shards would be taken for these", quote(spec.Stages[j].Name)), "add ${LANJOBS_STAGE}", "shard_key")
			return
		}
	}
}

// leftover is what looks like a variable of another kind: $NAME, {item}, ${ without an end; "" if nothing does.
func leftover(key string) string {
	rest := key
	for _, name := range task.ShardKeyUses(key) {
		rest = strings.Replace(rest, "${"+name+"}", "", 1)
	}
	at := strings.Index(rest, "$")
	if at < 0 || at+1 == len(rest) || rest[at+1] != '{' && !strings.HasPrefix(rest[at+1:], "LANJOBS") {
		return ""
	}
	return rest[at:]
}

func suggestVariable(name string) string {
	if w := nearest(task.ShardKeyVars, name); w != "" {
		return "write ${" + w + "}"
	}
	if w := "LANJOBS_" + strings.ToUpper(strings.TrimPrefix(name, "_")); slices.Contains(task.ShardKeyVars, w) {
		return "write ${" + w + "}"
	}
	return "one of ${" + strings.Join(task.ShardKeyVars, "}, ${") + "}"
}
