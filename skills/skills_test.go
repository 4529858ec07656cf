package skills

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestNames: a skill has the same name as its folder, and a description, as agentskills.io requires.
func TestNames(t *testing.T) {
	files, err := filepath.Glob("*/SKILL.md")
	if err != nil || len(files) != 2 {
		t.Fatalf("the skills are %v, %v", files, err)
	}
	name := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head := Head(string(text))
		if folder := filepath.Dir(file); head["name"] != folder || !name.MatchString(folder) || len(folder) > 64 {
			t.Errorf("%s has the name %q", file, head["name"])
		}
		if n := len(head["description"]); n == 0 || n > 1024 {
			t.Errorf("%s has a description of %d bytes", file, n)
		}
	}
}
