package fsm

import (
	"lanjobs/task"
)

var decoders = map[kind]func(*dec) Command{
	kindInitCluster: func(d *dec) Command {
		return &InitCluster{ID: d.str(), Name: d.str(), CACert: d.raw(), CAKey: d.raw(), GossipKey: d.raw(), By: d.str()}
	},
	kindElected: func(d *dec) Command { return &Elected{Node: task.NodeID(d.str()), Term: d.u64()} },
	kindRegisterNode: func(d *dec) Command {
		c := &RegisterNode{Info: decInfo(d), Incarnation: d.u64(), Held: decTokens(d), Load: decLoad(d)}
		if d.more() {
			c.Caring, c.Crashes = d.bool(), d.num()
		}
		return c
	},
	kindSetOnline: func(d *dec) Command {
		return &SetOnline{Node: task.NodeID(d.str()), Online: d.bool(), Reason: d.str(), Caring: d.more() && d.bool()}
	},
	kindSetNode: func(d *dec) Command {
		return &SetNode{Node: task.NodeID(d.str()), Action: NodeAction(d.str()), After: task.Millis(d.i64()), Labels: decKVs(d), Reason: d.str(), By: d.str()}
	},
	kindSubmitJob: func(d *dec) Command {
		return &SubmitJob{RequestID: task.RequestID(d.str()), Job: task.JobID(d.str()), Spec: d.raw(), Digest: d.raw(), By: d.str()}
	},
	kindCancelJob: func(d *dec) Command {
		return &CancelJob{Job: task.JobID(d.str()), Grace: task.Millis(d.i64()), Reason: d.str(), By: d.str(), RequestID: task.RequestID(d.str())}
	},
	kindRetryJob: func(d *dec) Command {
		return &RetryJob{RequestID: task.RequestID(d.str()), Job: task.JobID(d.str()), Stage: d.str(),
			Shards: readList(d, func(d *dec) task.Range { return task.Range{First: d.num(), Last: d.num()} }),
			All:    d.bool(), FromStart: d.bool(), By: d.str()}
	},
	kindCollectJobs: func(d *dec) Command {
		return &CollectJobs{Jobs: readList(d, func(d *dec) task.JobID { return task.JobID(d.str()) })}
	},
	kindGrant: func(d *dec) Command {
		c := &Grant{Node: task.NodeID(d.str()), Incarnation: d.u64(), Job: task.JobID(d.str()), Stage: d.num()}
		last := int64(0)
		c.Shards = readList(d, func(d *dec) int { last += d.i64(); return narrow(last) })
		return c
	},
	kindRenew: func(d *dec) Command {
		return &Renew{Node: task.NodeID(d.str()), Incarnation: d.u64(), Tokens: decTokens(d), Load: decLoad(d)}
	},
	kindReport: func(d *dec) Command {
		return &Report{Node: task.NodeID(d.str()), Reports: readList(d, decReport)}
	},
	kindExpire: func(d *dec) Command { return &Expire{Tokens: decTokens(d)} },
	kindCheckpoint: func(d *dec) Command {
		return &Checkpoint{Ref: decRef(d), Token: task.Token(d.u64()), Seq: d.u64(), Data: d.raw()}
	},
	kindPutOutput: func(d *dec) Command {
		return &PutOutput{Ref: decRef(d), Token: task.Token(d.u64()), Output: decKV(d), RequestID: task.RequestID(d.str())}
	},
	kindPutState: func(d *dec) Command {
		c := &PutState{Ref: decRef(d), Token: task.Token(d.u64()), RequestID: task.RequestID(d.str()), Key: d.str(), Value: d.raw()}
		if d.bool() {
			v := d.u64()
			c.IfVersion = &v
		}
		return c
	},
	kindCreateToken: func(d *dec) Command {
		c := &CreateToken{ID: d.str(), Hash: d.raw(), TTL: task.Millis(d.i64()), Uses: d.num(), Worker: d.bool(), By: d.str()}
		if d.more() {
			c.Role = Role(d.str())
		}
		return c
	},
	kindRemoveToken: func(d *dec) Command { return &RemoveToken{ID: d.str(), By: d.str()} },
	kindAdmitNode: func(d *dec) Command {
		c := &AdmitNode{TokenHash: d.raw(), Node: task.NodeID(d.str()), Name: d.str(), Worker: d.bool()}
		if d.more() {
			c.Key = d.raw()
		}
		return c
	},
	kindNewGeneration: func(d *dec) Command { return &NewGeneration{By: d.str(), Reason: d.str(), AtLeast: d.u64()} },
	kindAdmitClient:   decAdmitClient,
	kindRemoveClient:  func(d *dec) Command { return &RemoveClient{ID: d.str(), By: d.str()} },
	kindFireSchedule:  decFireSchedule,
	kindSkipSchedule:  decSkipSchedule,
	kindSetSchedule:   decSetSchedule,
	kindSetQueue:      decSetQueue,
	kindSetJob:        decSetJob,
	kindExpireJob:     func(d *dec) Command { return &ExpireJob{Job: task.JobID(d.str())} },
	kindCursor:        decCursor,
	kindSplitShard:    func(d *dec) Command { return &SplitShard{Ref: decRef(d), Token: task.Token(d.u64())} },
}

func (*InitCluster) kind() kind   { return kindInitCluster }
func (*Elected) kind() kind       { return kindElected }
func (*RegisterNode) kind() kind  { return kindRegisterNode }
func (*SetOnline) kind() kind     { return kindSetOnline }
func (*SetNode) kind() kind       { return kindSetNode }
func (*SubmitJob) kind() kind     { return kindSubmitJob }
func (*CancelJob) kind() kind     { return kindCancelJob }
func (*RetryJob) kind() kind      { return kindRetryJob }
func (*CollectJobs) kind() kind   { return kindCollectJobs }
func (*Grant) kind() kind         { return kindGrant }
func (*Renew) kind() kind         { return kindRenew }
func (*Report) kind() kind        { return kindReport }
func (*Expire) kind() kind        { return kindExpire }
func (*Checkpoint) kind() kind    { return kindCheckpoint }
func (*PutOutput) kind() kind     { return kindPutOutput }
func (*PutState) kind() kind      { return kindPutState }
func (*CreateToken) kind() kind   { return kindCreateToken }
func (*RemoveToken) kind() kind   { return kindRemoveToken }
func (*AdmitNode) kind() kind     { return kindAdmitNode }
func (*NewGeneration) kind() kind { return kindNewGeneration }

func (c *InitCluster) encode(e *enc) {
	e.str(c.ID)
	e.str(c.Name)
	e.raw(c.CACert)
	e.raw(c.CAKey)
	e.raw(c.GossipKey)
	e.str(c.By)
}
func (c *Elected) encode(e *enc) { e.str(string(c.Node)); e.u64(c.Term) }
func (c *RegisterNode) encode(e *enc) {
	encInfo(e, c.Info)
	e.u64(c.Incarnation)
	list(e, c.Held, encToken)
	encLoad(e, c.Load)
	e.bool(c.Caring)
	e.num(c.Crashes)
}
func (c *SetOnline) encode(e *enc) {
	e.str(string(c.Node))
	e.bool(c.Online)
	e.str(c.Reason)
	e.bool(c.Caring)
}
func (c *SetNode) encode(e *enc) {
	e.str(string(c.Node))
	e.str(string(c.Action))
	e.i64(int64(c.After))
	list(e, c.Labels, encKV)
	e.str(c.Reason)
	e.str(c.By)
}
func (c *SubmitJob) encode(e *enc) {
	e.str(string(c.RequestID))
	e.str(string(c.Job))
	e.raw(c.Spec)
	e.raw(c.Digest)
	e.str(c.By)
}
func (c *CancelJob) encode(e *enc) {
	e.str(string(c.Job))
	e.i64(int64(c.Grace))
	e.str(c.Reason)
	e.str(c.By)
	e.str(string(c.RequestID))
}
func (c *RetryJob) encode(e *enc) {
	e.str(string(c.RequestID))
	e.str(string(c.Job))
	e.str(c.Stage)
	list(e, c.Shards, func(e *enc, r task.Range) { e.num(r.First); e.num(r.Last) })
	e.bool(c.All)
	e.bool(c.FromStart)
	e.str(c.By)
}
func (c *CollectJobs) encode(e *enc) {
	list(e, c.Jobs, func(e *enc, j task.JobID) { e.str(string(j)) })
}
func (c *Grant) encode(e *enc) {
	e.str(string(c.Node))
	e.u64(c.Incarnation)
	e.str(string(c.Job))
	e.num(c.Stage)
	last := 0
	list(e, c.Shards, func(e *enc, s int) { e.num(s - last); last = s })
}
func (c *Renew) encode(e *enc) {
	e.str(string(c.Node))
	e.u64(c.Incarnation)
	list(e, c.Tokens, encToken)
	encLoad(e, c.Load)
}
func (c *Report) encode(e *enc) { e.str(string(c.Node)); list(e, c.Reports, encReport) }
func (c *Expire) encode(e *enc) { list(e, c.Tokens, encToken) }
func (c *Checkpoint) encode(e *enc) {
	encRef(e, c.Ref)
	encToken(e, c.Token)
	e.u64(c.Seq)
	e.raw(c.Data)
}
func (c *PutOutput) encode(e *enc) {
	encRef(e, c.Ref)
	encToken(e, c.Token)
	encKV(e, c.Output)
	e.str(string(c.RequestID))
}
func (c *PutState) encode(e *enc) {
	encRef(e, c.Ref)
	encToken(e, c.Token)
	e.str(string(c.RequestID))
	e.str(c.Key)
	e.raw(c.Value)
	e.bool(c.IfVersion != nil)
	if c.IfVersion != nil {
		e.u64(*c.IfVersion)
	}
}
func (c *CreateToken) encode(e *enc) {
	e.str(c.ID)
	e.raw(c.Hash)
	e.i64(int64(c.TTL))
	e.num(c.Uses)
	e.bool(c.Worker)
	e.str(c.By)
	e.str(string(c.Role))
}
func (c *RemoveToken) encode(e *enc) { e.str(c.ID); e.str(c.By) }
func (c *AdmitNode) encode(e *enc) {
	e.raw(c.TokenHash)
	e.str(string(c.Node))
	e.str(c.Name)
	e.bool(c.Worker)
	e.raw(c.Key)
}
func (c *NewGeneration) encode(e *enc) { e.str(c.By); e.str(c.Reason); e.u64(c.AtLeast) }
