//go:build unix && !linux

package main

import "golang.org/x/sys/unix"

// dup duplicates a descriptor: to becomes a copy of from.
func dup(from, to int) error { return unix.Dup2(from, to) }
