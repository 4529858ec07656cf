//go:build darwin || freebsd

package tree

import "syscall"

func ctime(s *syscall.Stat_t) int64 { return s.Ctimespec.Nano() }
