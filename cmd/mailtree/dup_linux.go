package main

import "golang.org/x/sys/unix"

// dup makes the descriptor to a duplicate of the descriptor from.
func dup(from, to int) error { return unix.Dup3(from, to, 0) }
