//go:build unix

package tree

import (
	"io/fs"
	"syscall"
)

// StatOfInfo converts the result of os.Stat to a FileStat.
func StatOfInfo(fi fs.FileInfo) FileStat {
	st := FileStat{Mode: fi.Mode(), Size: fi.Size(), MTime: fi.ModTime().UnixNano()}
	if s, ok := fi.Sys().(*syscall.Stat_t); ok {
		st.CTime, st.Inode = ctime(s), s.Ino
	}
	return st
}
