package maildir

// Descriptor is the descriptor that a tree is synced by.
func Descriptor(t *Tree) int { return t.sys.fd }
