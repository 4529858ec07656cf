package tree

// Written describes a file after an operation has written or removed it.
type Written struct {
	Data []byte
	Stat FileStat // the file's state; if it is zero or outdated, the file is read and compared
	Gone bool     // the operation removed the file
}
