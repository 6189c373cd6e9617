package runner

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"lanjobs/task"
)

// Range is what the shard works on, end exclusive.
func (c *TaskClient) Range(ctx context.Context) (task.ShardRange, error) {
	var now task.ShardRange
	return now, c.getJSON(ctx, "range", &now)
}

// SetCursor says that nothing from cursor on is begun, and gets the range that the shard has from now on: its later part may have
// been given to another machine.
func (c *TaskClient) SetCursor(ctx context.Context, cursor int64) (task.ShardRange, error) {
	var now task.ShardRange
	r, err := c.do(ctx, http.MethodPut, "range", strconv.AppendInt(nil, cursor, 10), newRequest())
	if err == nil {
		err = json.Unmarshal(r.body, &now)
	}
	return now, err
}
