//go:build !race

package markdown

const slow = 1
