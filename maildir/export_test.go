package maildir

// Later is the number of operations that wait for others to end.
func Later(p *Project) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.again)
}
