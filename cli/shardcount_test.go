package cli

import (
	"testing"

	"lanjobs/task"
)

func TestShardCount(t *testing.T) {
	for want, stages := range map[string][]task.StageSpec{
		"1 shard":                             {{Shards: 1}},
		"12 shards":                           {{Shards: 2}, {Shards: 10}},
		"shards counted when the stage opens": {{Broadcast: true}},
		"3 shards and those of 1 stage counted when it opens": {{Shards: 1}, {ShardsFrom: "a.b"}, {Shards: 2}},
	} {
		if got := shardCount(&task.Spec{Stages: stages}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
