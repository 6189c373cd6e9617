package task

// Ordinary tells whether an attempt asks for no more than one does that says nothing: up to one processor, and neither memory
// nor disk. How many of those a machine runs at once its owner says by its slots; bigger ones are reckoned.
func (r Resources) Ordinary() bool {
	return r.MilliCPU <= DefaultMilliCPU && r.MemoryMB == 0 && r.DiskMB == 0
}
