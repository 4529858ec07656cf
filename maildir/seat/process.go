package seat

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Process identifies a process on this machine by its PID and start time. The start time distinguishes it from a
// later process with the same PID. "" means an unknown process.
type Process string

// shells lists the shells that clients use to run hooks.
var shells = []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "busybox"}

// ClientProcess returns the nearest ancestor of this process that is not a shell, or "" if the system does not report
// it.
func ClientProcess() Process {
	for pid := os.Getppid(); pid > 1; {
		st, err := readStat(pid)
		if err != nil {
			return ""
		}
		if !slices.Contains(shells, st.name) {
			return st.process(pid)
		}
		pid = st.parent
	}
	return ""
}

// Ancestors returns the ancestors of this process, nearest first. If the system does not report all of them, all is
// false.
func Ancestors() (above []Process, all bool) {
	for pid := os.Getppid(); pid > 0; {
		st, err := readStat(pid)
		if err != nil {
			return above, false
		}
		above = append(above, st.process(pid))
		pid = st.parent
	}
	return above, true
}

// ProcessOf returns the process with the given PID, or "" if there is none.
func ProcessOf(pid int) Process {
	st, err := readStat(pid)
	if err != nil {
		return ""
	}
	return st.process(pid)
}

// read parses p. ok is false if the process belongs to another namespace.
func (p Process) read() (pid int, started string, ok bool) {
	of := strings.Fields(string(p))
	if len(of) != 3 || of[0] != namespace() {
		return 0, "", false
	}
	pid, err := strconv.Atoi(of[1])
	return pid, of[2], err == nil
}

// Gone reports whether the process has definitely exited.
func (p Process) Gone() bool {
	pid, started, ok := p.read()
	if !ok {
		return false
	}
	st, err := readStat(pid)
	return errors.Is(err, fs.ErrNotExist) || err == nil && (st.started != started || st.state == "Z")
}

// PID returns the process's PID. ok is false if the process has exited or belongs to another namespace.
func (p Process) PID() (pid int, ok bool) {
	if pid, _, ok = p.read(); !ok || p.Gone() {
		return 0, false
	}
	return pid, true
}

// Serves reports whether the process is known to serve several sessions. The children of such a server have the
// environment in which the server was started, not that of a session. Codex's terminals share such a server (`codex
// app-server`).
func (p Process) Serves() bool { return slices.Contains(p.args(), "app-server") }

// interpreters lists programs that run a file given as an argument.
var interpreters = []string{"node", "nodejs", "bun", "deno", "python", "python3"}

// Runs reports whether the process is running a program with one of the given names, directly or through an
// interpreter. Anything after a dash in the program's name is ignored, so "cursor" also matches cursor-agent. For a
// script, a folder in its path may also match, so "gemini" matches `node /opt/gemini-cli/main.js`.
func (p Process) Runs(names []string) bool {
	args := p.args()
	if len(args) == 0 {
		return false
	}
	program := path.Base(args[0])
	if !slices.Contains(interpreters, plainName(program)) {
		return slices.Contains(names, plainName(program))
	}
	script := slices.IndexFunc(args[1:], func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	return script >= 0 && slices.ContainsFunc(strings.Split(args[1+script], "/"), func(element string) bool {
		return slices.Contains(names, plainName(element))
	})
}

// plainName returns the first word of a file name.
func plainName(file string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(file, "."), ".")
	name, _, _ = strings.Cut(name, "-")
	return name
}

// args returns the process's command line, or nothing if it is unknown.
func (p Process) args() []string {
	pid, _, ok := p.read()
	if !ok {
		return nil
	}
	line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return strings.Split(string(line), "\x00")
}

// namespace returns this process's PID namespace. Each container has its own.
func namespace() string {
	ns, _ := os.Readlink("/proc/self/ns/pid") // empty if the system has no namespaces
	return ns
}

// stat contains the parts of /proc/PID/stat that a Process needs.
type stat struct {
	name, state, started string
	parent               int
}

// process returns the Process with the given PID and start time.
func (st stat) process(pid int) Process {
	return Process(fmt.Sprintf("%s %d %s", namespace(), pid, st.started))
}

func readStat(pid int) (st stat, err error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return st, err
	}
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return st, errors.New("the process's stat file has an unexpected format")
	}
	rest := strings.Fields(string(data[end+1:])) // the fields of proc_pid_stat(5), beginning with field 3
	if len(rest) < 20 {
		return st, errors.New("the process's stat file has an unexpected format")
	}
	st = stat{name: string(data[open+1 : end]), state: rest[0], started: rest[19]}
	st.parent, err = strconv.Atoi(rest[1])
	return st, err
}
