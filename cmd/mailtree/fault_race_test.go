//go:build race

package main

// slower is the factor by which the race detector slows the program down.
const slower = 5
