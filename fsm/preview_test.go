package fsm_test

import (
	"encoding/json"
	"testing"

	"lanjobs/fsm"
	"lanjobs/task"
)

// A preview shows what submitting makes grantable, or nothing at all, and changes nothing.
func TestPreviewIsWhatSubmitMakes(t *testing.T) {
	stage := func(name string, shards int, needs ...string) task.StageSpec {
		return task.StageSpec{Name: name, Needs: needs, Shards: shards, When: task.WhenSuccess, Run: "x", Lease: task.DefaultLease(task.Minute), Retry: task.DefaultRetry()}
	}
	weighted := stage("w", 3)
	weighted.Weights = []int{1, 9, 5}
	onFailure := stage("f", 1)
	onFailure.When = task.WhenFailure
	everywhere := stage("b", 0)
	everywhere.Broadcast = true
	for name, c := range map[string]struct {
		spec task.Spec
		none bool
	}{
		"plain":           {spec: task.Spec{Stages: []task.StageSpec{stage("a", 5)}}},
		"two stages":      {spec: task.Spec{Stages: []task.StageSpec{stage("a", 2), stage("b", 3, "a")}}},
		"weights":         {spec: task.Spec{Stages: []task.StageSpec{weighted}}},
		"broadcast":       {spec: task.Spec{Stages: []task.StageSpec{everywhere}}, none: true},
		"skipped at once": {spec: task.Spec{Stages: []task.StageSpec{onFailure}}, none: true},
		"many shards":     {spec: task.Spec{Stages: []task.StageSpec{stage("a", 5000)}}, none: true},
		"key":             {spec: task.Spec{IdempotencyKey: "k", IdempotencyWindow: task.Day, Stages: []task.StageSpec{stage("a", 1)}}, none: true},
		"unknown queue":   {spec: task.Spec{Queue: "none", Stages: []task.StageSpec{stage("a", 1)}}, none: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := fsm.New()
			spec := c.spec
			spec.Name, spec.Retain, spec.Priority = "x", task.Day, 50
			if spec.Queue == "" {
				spec.Queue = task.DefaultQueue
			}
			data, err := json.Marshal(spec)
			if err != nil {
				t.Fatal(err)
			}
			submit := &fsm.SubmitJob{RequestID: "r", Job: "j1", Spec: data, Digest: data}
			before := s.Digest()
			j := s.Preview(submit)
			if s.Digest() != before {
				t.Fatal("the state has changed")
			}
			if c.none {
				if j != nil {
					t.Fatalf("%+v", j)
				}
				return
			}
			s.ApplyBatch(1, &fsm.Batch{Commands: []fsm.Command{submit}})
			made := s.Job("j1")
			for i := range made.Stages {
				if got, want := ready(j, i), ready(made, i); got != want {
					t.Errorf("stage %d: %s, want %s", i, got, want)
				}
				if j.Stages[i].State != made.Stages[i].State || j.Grantable(i) != made.Grantable(i) {
					t.Errorf("stage %d: %v %d, want %v %d", i, j.Stages[i].State, j.Grantable(i), made.Stages[i].State, made.Grantable(i))
				}
			}
			if j.Seq != made.Seq || j.Priority != made.Priority || j.Queue() != made.Queue() {
				t.Errorf("%d %d %s, want %d %d %s", j.Seq, j.Priority, j.Queue(), made.Seq, made.Priority, made.Queue())
			}
			if s.Preview(submit) != nil {
				t.Error("a repeated request makes another job")
			}
		})
	}
}

func ready(j *fsm.Job, stage int) string {
	var order []int
	j.EachReady(stage, func(shard int) bool { order = append(order, shard); return true })
	text, _ := json.Marshal(order)
	return string(text)
}
