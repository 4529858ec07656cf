package tree

// Written is the state in which an operation left one of its paths.
type Written struct {
	Data []byte
	Stat FileStat // the file's state; if it is zero or from before the rename, the file is read and compared
	Gone bool     // the operation removed the file
}
