package maildir

// Descriptor is what the tree syncs with, which it keeps from now on.
func Descriptor(t *Tree) int {
	if err := t.hold(); err != nil {
		panic(err)
	}
	return t.sys.fd
}
