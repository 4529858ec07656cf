package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// awaitClaim waits until a file of the code base is claimed, or was, because a tool of the client
// changed it.
func (d *desk) awaitClaim(path string) {
	d.t.Helper()
	for deadline := time.Now().Add(clientWait); ; time.Sleep(5 * time.Millisecond) {
		claims, _ := filepath.Glob(filepath.Join(d.home, ".mailtree/projects/*/repo/claims/*.json"))
		for _, file := range claims {
			text, _ := os.ReadFile(file)
			if strings.Contains(string(text), `"path": "`+path+`"`) && strings.Contains(string(text), "made automatically by an edit") {
				return
			}
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("%s was not claimed: %v", path, claims)
		}
	}
}
