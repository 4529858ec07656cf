package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// smallInit is the maximum number of bytes that a package's initializers may allocate, unless largeInits lists the
// package.
const smallInit = 4 << 10

// largeInits lists the packages whose initializers may allocate more, in KiB. Every process runs these initializers,
// even the hook that runs before each edit. Most of them belong to libraries that the project cannot do without.
var largeInits = map[string]int{
	"github.com/yuin/goldmark/extension":         280,
	"github.com/yuin/goldmark/util":              150,
	"github.com/yuin/goldmark/parser":            120,
	"github.com/yuin/goldmark/renderer/html":     20,
	"github.com/yuin/goldmark":                   18,
	"golang.org/x/net/html":                      135,
	"github.com/google/jsonschema-go/jsonschema": 90,
	"github.com/modelcontextprotocol/go-sdk/mcp": 10,
	"golang.org/x/text/encoding/ianaindex":       60,
	"golang.org/x/text/encoding/htmlindex":       16,
	"golang.org/x/text/internal/language":        6,
	"github.com/gobwas/ws":                       60,
	"blitiri.com.ar/go/spf":                      45,
	"github.com/VictoriaMetrics/metrics":         32,
	"gopkg.in/yaml%2ev2":                         30,
	"go.yaml.in/yaml/v3":                         30,
	"github.com/go-git/go-git/v5/internal/url":   16,
	"github.com/dustin/go-humanize":              12,
	"github.com/joho/godotenv":                   10,
	"github.com/emersion/go-smtp":                6,
	"github.com/BurntSushi/toml/internal":        6,
	"encoding/gob":                               30,
	"encoding/xml":                               22,
	"html/template":                              20,
	"runtime/metrics":                            18,
	"unicode":                                    14,
	"net/http":                                   6,
	"vendor/golang.org/x/net/http2/hpack":        8,
	"mime":                                       6,
	"compress/flate":                             6,
	"main":                                       16,
	"mailtree/indexer":                           16,
	"mailtree/guard":                             8,
	"mailtree/gateway/message":                   12,
	"mailtree/page":                              10,
	"mailtree/clients/event":                     7,
	"mailtree/mcp/mail":                          13,
	"mailtree/mcp/aimx":                          8,
	"mailtree/mcp/agentmail":                     6,
	"mailtree/mcp/postal":                        6,
}

// allInits is the maximum that the initializers of all packages together may allocate, in KiB.
const allInits = 1400

// TestInit checks how much the program allocates before main runs. It builds the program, because a test binary links
// more packages.
func TestInit(t *testing.T) {
	t.Parallel()
	exe := filepath.Join(t.TempDir(), "mailtree")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	hook := exec.CommandContext(t.Context(), exe, "hook", "claude")
	hook.Env = []string{"GODEBUG=inittrace=1", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	trace, err := hook.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, trace)
	}
	sum := 0
	for _, m := range initLine.FindAllSubmatch(trace, -1) {
		name := string(m[1])
		bytes, err := strconv.Atoi(string(m[2]))
		if err != nil {
			t.Fatal(err)
		}
		sum += bytes
		if most := max(smallInit, largeInits[name]<<10); bytes > most {
			t.Errorf("the initializers of %s allocate %d bytes, over the limit of %d: see package lazy", name, bytes, most)
		}
	}
	t.Logf("the initializers of all packages allocate %d KiB", sum>>10)
	if sum > allInits<<10 || sum < smallInit {
		t.Errorf("the initializers of all packages allocate %d bytes, over the limit of %d", sum, allInits<<10)
	}
}

// initLine matches a line that the Go runtime writes about a package.
var initLine = regexp.MustCompile(`(?m)^init (\S+) @.*?, (\d+) bytes`)
