package fsm

import "lanjobs/task"

func (c *FireSchedule) encode(e *enc) {
	e.str(c.Name)
	e.str(c.Nominal)
	e.i64(c.Due)
	e.str(string(c.Job))
	e.num(c.Missed)
	e.num(c.Dropped)
	e.bool(c.Manual)
	e.str(c.By)
	e.str(string(c.RequestID))
}

func decFireSchedule(d *dec) Command {
	return &FireSchedule{Name: d.str(), Nominal: d.str(), Due: d.i64(), Job: task.JobID(d.str()), Missed: d.num(), Dropped: d.num(),
		Manual: d.bool(), By: d.str(), RequestID: task.RequestID(d.str())}
}

func (c *SkipSchedule) encode(e *enc) {
	e.str(c.Name)
	e.str(c.Nominal)
	e.i64(c.Due)
	e.num(c.Missed)
	e.str(c.Reason)
}

func decSkipSchedule(d *dec) Command {
	return &SkipSchedule{Name: d.str(), Nominal: d.str(), Due: d.i64(), Missed: d.num(), Reason: d.str()}
}

func (c *SetSchedule) encode(e *enc) {
	e.str(c.Name)
	e.str(string(c.Action))
	e.str(c.By)
	e.str(string(c.RequestID))
}

func decSetSchedule(d *dec) Command {
	return &SetSchedule{Name: d.str(), Action: ScheduleAction(d.str()), By: d.str(), RequestID: task.RequestID(d.str())}
}

func (c *SetQueue) encode(e *enc) {
	e.str(c.Name)
	e.bool(c.Max != nil)
	if c.Max != nil {
		e.num(*c.Max)
	}
	e.bool(c.Paused != nil)
	if c.Paused != nil {
		e.bool(*c.Paused)
	}
	e.bool(c.Balance != nil)
	if c.Balance != nil {
		e.str(string(*c.Balance))
	}
	e.bool(c.Remove)
	e.str(c.By)
	e.str(string(c.RequestID))
}

func decSetQueue(d *dec) Command {
	c := &SetQueue{Name: d.str()}
	if d.bool() {
		c.Max = new(d.num())
	}
	if d.bool() {
		c.Paused = new(d.bool())
	}
	if d.bool() {
		c.Balance = new(task.Balance(d.str()))
	}
	c.Remove, c.By, c.RequestID = d.bool(), d.str(), task.RequestID(d.str())
	return c
}

func (c *SetJob) encode(e *enc) {
	e.str(string(c.Job))
	e.str(string(c.Action))
	e.num(c.Priority)
	e.str(c.By)
	e.str(string(c.RequestID))
}

func decSetJob(d *dec) Command {
	return &SetJob{Job: task.JobID(d.str()), Action: JobAction(d.str()), Priority: d.num(), By: d.str(), RequestID: task.RequestID(d.str())}
}

func (c *ExpireJob) encode(e *enc) { e.str(string(c.Job)) }

func (c *Cursor) encode(e *enc) {
	encRef(e, c.Ref)
	encToken(e, c.Token)
	e.i64(c.Cursor)
	e.str(string(c.RequestID))
}

func decCursor(d *dec) Command {
	return &Cursor{Ref: decRef(d), Token: task.Token(d.u64()), Cursor: d.i64(), RequestID: task.RequestID(d.str())}
}

func (c *SplitShard) encode(e *enc) { encRef(e, c.Ref); encToken(e, c.Token) }
