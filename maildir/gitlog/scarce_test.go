package gitlog

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestScarce compares the tree with the index when only a few file descriptors are available. The comparison must
// either find all changes or report that it could not read the files. The limit applies to a whole process, so the test
// starts a separate process.
func TestScarce(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.send("m1", "a/b/c/d/edited", "a/b/c/d/removed", "e/f/kept")
	tr.flush()
	tr.write("a/b/c/d/edited", "another")
	tr.check(os.Remove(tr.path("a/b/c/d/removed")))
	tr.write("a/b/c/d/e/f/new", "x")
	tr.write("e/f/g/h/new.tmp", "x")
	exe, err := os.Executable()
	tr.check(err)
	c := exec.Command(exe)
	c.Env = append(os.Environ(), "GITLOG_SCARCE="+tr.dir)
	out, err := c.CombinedOutput()
	if tr.check(err); !strings.HasSuffix(string(out), "[a/b/c/d/e/f/new a/b/c/d/edited a/b/c/d/removed]\n") {
		t.Errorf("%s", out)
	}
}

// missedWithFew repeats the comparison, each time with one more file descriptor, until there are enough.
func missedWithFew(dir string) {
	l, err := Open(Config{Dir: dir, External: true})
	if err != nil {
		panic(err)
	}
	var full syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &full); err != nil {
		panic(err)
	}
	few := full
	for few.Cur = 3; ; few.Cur++ { // the type of Cur depends on the system
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
			panic(err)
		}
		found, err := l.missed(context.Background(), 0)
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &full); err != nil {
			panic(err)
		}
		if err != nil && few.Cur < 64 {
			continue
		}
		slices.Sort(found)
		fmt.Println(few.Cur, err, found)
		return
	}
}
