package runner

const usersSupported = false

func (owner) giveTree(string) error { return nil }

func (*taskUser) mayRead(string) bool { return true }

func (*taskUser) barredAt(string) string { return "" }

func (r *Runner) openToUsers() error { return nil }
