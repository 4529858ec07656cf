package tree

// Written is what an operation made of one of its paths.
type Written struct {
	Data []byte
	Stat FileStat // of the file in its place; one from before its rename, or the zero value, has it read and compared
	Gone bool     // the operation removed the file
}
