package skills

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// TestSpecification checks that each skill follows the Agent Skills specification (agentskills.io/specification), and
// that Head returns the same fields as a YAML parser.
func TestSpecification(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*/SKILL.md")
	if err != nil || len(files) != 2 {
		t.Fatalf("the skills are %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, problem := parse(filepath.Dir(file), string(text))
		if problem != "" {
			t.Errorf("%s: %s", file, problem)
		}
		for field, value := range Head(string(text)) {
			if head[field] != value {
				t.Errorf("%s: Head reads %s as %q, a YAML parser as %q", file, field, value, head[field])
			}
		}
	}
}

// TestSpecificationRefuses checks that a skill that breaks a rule does not pass.
func TestSpecificationRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"name: a-b\ndescription: d\n",
		"---\nname: a-b\n---\n",
		"---\nname: other\ndescription: d\n---\n",
		"---\nname: a-b\ndescription: d: e\n---\n",
		"---\nname: a-b\ndescription: d\nauthor: e\n---\n",
		"---\nname: a-b\ndescription: " + strings.Repeat("d", 1025) + "\n---\n",
		"---\nname: a-b\ndescription: d\ncompatibility: " + strings.Repeat("d", 501) + "\n---\n",
	} {
		if _, problem := parse("a-b", text); problem == "" {
			t.Errorf("%.80q passes", text)
		}
	}
	for _, name := range []string{"A", "-a", "a-", "a--b", "a_b", "", strings.Repeat("a", 65)} {
		if _, problem := parse(name, "---\nname: "+name+"\ndescription: d\n---\n"); problem == "" {
			t.Errorf("the name %q passes", name)
		}
	}
	if _, problem := parse("a-b", "---\nname: a-b\ndescription: d\nlicense: MIT\n---\n# Text\n"); problem != "" {
		t.Error(problem)
	}
}

var skillName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// parse returns the front matter of the skill in a folder. If the skill breaks a rule of the specification, problem
// describes the rule.
func parse(folder, text string) (head map[string]any, problem string) {
	yamlText, _, closed := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
	if !strings.HasPrefix(text, "---\n") || !closed {
		return nil, "there is no front matter between two lines ---"
	}
	if err := yaml.Unmarshal([]byte(yamlText), &head); err != nil {
		return nil, err.Error()
	}
	limits := map[string]int{"name": 64, "description": 1024, "compatibility": 500}
	for _, field := range slices.Sorted(maps.Keys(limits)) {
		value, is := head[field]
		content, isText := value.(string)
		if n := utf8.RuneCountInString(content); is && (!isText || n == 0) || n > limits[field] || !is && field != "compatibility" {
			return head, fmt.Sprintf("%s must be text of 1 to %d characters", field, limits[field])
		}
	}
	if head["name"] != folder || !skillName.MatchString(folder) {
		return head, fmt.Sprintf("the name is %q in the folder %q", head["name"], folder)
	}
	for field := range head {
		if !slices.Contains([]string{"name", "description", "license", "compatibility", "metadata", "allowed-tools"}, field) {
			return head, "unknown field " + field
		}
	}
	return head, ""
}
