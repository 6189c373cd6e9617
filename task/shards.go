package task

// RangeSpec cuts the numbers from Start up to End, which is exclusive, into shards of Size; the last one may be smaller (R23).
type RangeSpec struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	Size  int64 `json:"size"`
}

// Shards is the number of pieces, rounded up; 0 if the range is empty, turned round, longer than MaxRange or has no Size.
func (r RangeSpec) Shards() int64 {
	n := r.End - r.Start
	if n <= 0 || n > MaxRange || r.Size <= 0 {
		return 0
	}
	return (n-1)/r.Size + 1
}

// Shard is the piece with a number from 0 on.
func (r RangeSpec) Shard(n int) ShardRange {
	start := r.Start + int64(n)*r.Size
	return ShardRange{Start: start, End: min(start+r.Size, r.End)}
}

// ShardRange is the part of a range that one shard works on; End is exclusive.
type ShardRange struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

// Len is how many numbers it has.
func (r ShardRange) Len() int64 { return max(r.End-r.Start, 0) }

// Resources are what one attempt is expected to use (R34). They are booked on the machine that runs it, of which a part
// always stays free.
type Resources struct {
	MilliCPU int `json:"milli_cpu,omitempty"` // thousandths of a processor; 0 = not stated: DefaultMilliCPU is booked, nothing is enforced
	MemoryMB int `json:"memory_mb,omitempty"` // MiB
	DiskMB   int `json:"disk_mb,omitempty"`   // MiB
}

// Booked is what is booked: a Spec made before resources were known counts as one processor.
func (r Resources) Booked() Resources {
	if r.MilliCPU <= 0 {
		r.MilliCPU = DefaultMilliCPU
	}
	return r
}
