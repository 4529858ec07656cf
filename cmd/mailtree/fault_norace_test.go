//go:build !race

package main

// slower is how many times slower the race detector makes the program.
const slower = 1
