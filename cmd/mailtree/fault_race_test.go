//go:build race

package main

// slower is the factor by which the race detector slows down the program.
const slower = 5
