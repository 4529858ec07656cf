package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/inmemory"
)

// TestDocs runs the sh blocks of README.md, the tutorial and the how-to pages with the real program. The blocks of a
// page run in order, in one shell in one terminal, with an empty home folder. A text block after an sh block shows what
// the block prints. All other blocks need a comment that says why they are not run.
//
// Comments in a page's source control how the test runs the page:
//
//	<!-- not run: REASON -->   the next block is neither run nor compared with output
//	<!-- exits N -->           the next sh block ends with this exit status instead of 0
//	<!-- in the background --> the next sh block starts a server, and runs until the page ends
//	<!-- run                   runs the lines that follow, which readers do not see. The command `project` creates
//	                           the code base ~/backend with a project and two agents, and enters that folder
func TestDocs(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"script", "curl", "git"} { // script is in Debian's bsdutils
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program)
		}
	}
	pages, err := filepath.Glob("../../docs/howto/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var ran, marked atomic.Int64
	t.Run("pages", func(t *testing.T) {
		for _, page := range append(pages, "../../README.md", "../../docs/tutorial.md") {
			t.Run(filepath.Base(page), func(t *testing.T) {
				t.Parallel()
				data, err := os.ReadFile(page)
				if err != nil {
					t.Fatal(err)
				}
				blocks, notRun := docBlocks(t, string(data))
				runBlocks(t, blocks)
				for _, b := range blocks {
					if !b.hidden {
						ran.Add(1)
					}
				}
				marked.Add(int64(notRun))
			})
		}
	})
	t.Logf("%d blocks ran, %d are marked as not run", ran.Load(), marked.Load())
}

// docBlock is a block of commands in a page.
type docBlock struct {
	line       int
	code       string
	status     string // the exit status, or "" for 0
	background bool
	hidden     bool
	compared   bool // the page shows the output
	output     string
}

var docPart = regexp.MustCompile("(?ms)^ *<!-- (not run|exits|in the background|run\\b)(.*?)-->|^( *)```([^\n]*)\n(.*?)^ *```$")

// fenceLine matches the first or the last line of a block.
var fenceLine = regexp.MustCompile("(?m)^ *(```|~~~)")

// docBlocks returns a page's blocks of commands, and the number of blocks that are marked as not run.
func docBlocks(t *testing.T, page string) (blocks []*docBlock, notRun int) {
	var next docBlock  // what the comments say about the next block
	var skip bool      // the next block is not run
	var last *docBlock // the block whose output the next text block shows
	fenceLines := 0    // the number of lines that begin or end a block
	for _, m := range docPart.FindAllStringSubmatchIndex(page, -1) {
		part := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return page[m[2*i]:m[2*i+1]]
		}
		line := 1 + strings.Count(page[:m[0]], "\n")
		words, indent, lang := strings.TrimSpace(part(2)), part(3), part(4)
		if part(1) == "" {
			fenceLines += 2
		}
		body := strings.ReplaceAll("\n"+part(5), "\n"+indent, "\n")[1:]
		switch {
		case part(1) == "not run":
			if skip = len(words) > 2; !skip {
				t.Errorf("line %d: the comment gives no reason", line)
			}
		case part(1) == "exits":
			next.status = words
		case part(1) == "in the background":
			next.background = true
		case part(1) == "run":
			blocks = append(blocks, &docBlock{line: line, code: words + "\n", hidden: true})
		case skip:
			notRun++
			next, skip, last = docBlock{}, false, nil
		case lang == "sh":
			b := next
			b.line, b.code = line, body
			blocks = append(blocks, &b)
			next, last = docBlock{}, &b
		case lang == "text" && last != nil:
			last.compared, last.output, last = true, body, nil
		default:
			t.Errorf("line %d: the block is neither run, nor compared with output, nor marked as not run", line)
		}
	}
	if n := len(fenceLine.FindAllString(page, -1)); n != fenceLines {
		t.Errorf("the page has %d lines that begin or end a block, but the test understands only %d", n, fenceLines)
	}
	if skip || next != (docBlock{}) {
		t.Errorf("the page's last comment belongs to no block")
	}
	return blocks, notRun
}

const docProject = `project() {
	git init -q ~/backend && cd ~/backend
	mkdir -p app/api && echo 'def users(): return []' >app/api/users.py
	git add app && git commit -qm "Add users"
	mailtree new project && mailtree new agent GreenCastle && mailtree new agent BlueLake
}
`

// runBlocks runs a page's blocks, and compares what they print with what the page shows.
func runBlocks(t *testing.T, blocks []*docBlock) {
	work, err := os.MkdirTemp(inmemory.Folder(), "d-") // short, because the program truncates long paths to fit the terminal
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(work) })
	home := filepath.Join(work, "home/robin")
	config := "[user]\nname = robin\nemail = robin@example.org\n[init]\ndefaultBranch = main\n"
	if err := cmp.Or(os.MkdirAll(home, 0o700), os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endLeft(t, work) })

	var script strings.Builder
	port := freePort(t)
	script.WriteString("set -e\ntrap 'mailtree stop >/dev/null 2>&1 || true; wait' EXIT\nstty columns 100 rows 50\n" + docProject)
	for i, b := range blocks {
		code := strings.ReplaceAll(b.code, "8765", port)
		switch {
		case b.background:
			code = fmt.Sprintf("{\n%s} >$TMPDIR/%d 2>&1 &\nuntil grep MCP $TMPDIR/%[2]d; do sleep 0.1; done\n", code, i)
		case b.status != "":
			code = fmt.Sprintf("set +e\n{\n%s}\n[ $? = %s ] || { echo 'the exit status is not %[2]s'; exit 1; }\nset -e\n", code, b.status)
		}
		fmt.Fprintf(&script, "printf '\\036'\n%s", code)
	}
	file := filepath.Join(work, "page.sh")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // a block may wait for input
	defer cancel()
	cmd := exec.CommandContext(ctx, "script", "-qec", "sh "+file, "/dev/null")
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + work, "TERM=xterm", "LANG=C.UTF-8", "TZ=UTC", "NO_COLOR=1",
		"PAGER=cat", "EDITOR=true", "GIT_CONFIG_NOSYSTEM=1", "USER=robin", "LOGNAME=robin", "MAILTREE_ME=robin", "IDLE=1h", "PORT=" + port,
		"GOCOVERDIR=" + os.Getenv("GOCOVERDIR"), "GORACE=" + os.Getenv("GORACE")}
	out, err := cmd.CombinedOutput()
	outputs := strings.Split(string(out), "\036")[1:]
	if len(outputs) > len(blocks) || err == nil && len(outputs) < len(blocks) {
		t.Fatalf("%d blocks of %d ran:\n%s", len(outputs), len(blocks), out)
	}
	for i, got := range outputs {
		b := blocks[i]
		// The pages show the output for a user whose login name is robin.
		got = strings.NewReplacer("\r\n", "\n", work, "", port, "8765", "undo: MAILTREE_ME=robin ", "undo: ").Replace(got)
		t.Logf("line %d\n%s---\n%s", b.line, b.code, got)
		if b.compared && !likeShown(b.output).MatchString(normalize(got)) {
			t.Errorf("line %d: the page shows\n%s\nbut the output is\n%s", b.line, b.output, got)
		}
	}
	if err != nil {
		t.Fatalf("the block in line %d failed: %v", blocks[max(len(outputs)-1, 0)].line, err)
	}
}

// freePort returns a port that no program is using.
func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// varying lists patterns for text that differs between two runs, and the replacements to make before comparing outputs.
var varying = []struct {
	seen *regexp.Regexp
	with string
}{
	{regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]|\x1b[=>]"), ""},
	{regexp.MustCompile(`.*\r`), ""}, // text that the terminal overwrites
	{regexp.MustCompile(`\b20\d\d[-/]?\d\d[-/]?\d\d([T -]\d\d:?\d\d(:?\d\d(\.\d+)?)?Z?)?`), "DATE"},
	{regexp.MustCompile(`\bmsg_\w+|\b[0-9a-f]{7,64}\b`), "HASH"},
	{regexp.MustCompile(`\b([A-Z][a-z]{2} )?\d{1,2} [A-Z][a-z]{2} 20\d\d|\b[A-Z][a-z]{2} [A-Z][a-z]{2} \d{1,2} \d\d:\d\d:\d\d 20\d\d`), "DATE"},
	{regexp.MustCompile(`\b\d\d:\d\d(:\d\d)?\b`), "TIME"},
	{regexp.MustCompile(`\b\d+[smhd]( \d+[sm])?\b|\bnow\b`), "AGE"},
	{regexp.MustCompile(`\buid( |:)\d+`), "uid N"},
	{regexp.MustCompile(`\bprocess \d+`), "process N"},
	{regexp.MustCompile(`\b\d+ KB\b`), "N KB"},
	{regexp.MustCompile(`\s+`), " "}, // line breaks depend on the lengths of folder names
}

// normalize returns the text on one line, with the parts that differ between two runs replaced.
func normalize(text string) string {
	for _, v := range varying {
		text = v.seen.ReplaceAllString(text, v.with)
	}
	return strings.TrimSpace(text)
}

var anything = regexp.MustCompile(` ?… ?`)

// likeShown returns a regular expression that matches every normalized output that a page's text allows. An ellipsis
// (…) in the text matches anything, even nothing.
func likeShown(text string) *regexp.Regexp {
	return regexp.MustCompile("^" + anything.ReplaceAllString(regexp.QuoteMeta(normalize(text)), ".*") + "$")
}
