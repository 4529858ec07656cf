package seat

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Process names a process of this machine, so that nobody takes a later one of the same number for
// it. "" is one that is not known.
type Process string

// shells are programs that a client runs its hooks with.
var shells = []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "busybox"}

// ClientProcess is the process that runs this one: its parent, or above it where that is a shell.
// "" where the system does not tell.
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

// ProcessOf is the process of that number; "" where there is none.
func ProcessOf(pid int) Process {
	st, err := readStat(pid)
	if err != nil {
		return ""
	}
	return st.process(pid)
}

// read takes the text apart; ok is false for a process that is not among those that this one sees.
func (p Process) read() (pid int, started string, ok bool) {
	of := strings.Fields(string(p))
	if len(of) != 3 || of[0] != namespace() {
		return 0, "", false
	}
	pid, err := strconv.Atoi(of[1])
	return pid, of[2], err == nil
}

// Gone reports whether the process has ended for certain.
func (p Process) Gone() bool {
	pid, started, ok := p.read()
	if !ok {
		return false
	}
	st, err := readStat(pid)
	return errors.Is(err, fs.ErrNotExist) || err == nil && (st.started != started || st.state == "Z")
}

// PID is the process's number among those that this process sees; ok is false where it is not among
// them, or has ended.
func (p Process) PID() (pid int, ok bool) {
	if pid, _, ok = p.read(); !ok || p.Gone() {
		return 0, false
	}
	return pid, true
}

// Serves reports whether the process is known to be a server of several sessions. What it runs has
// the environment of whoever started the server, not of a session. Codex's terminals share one
// (`codex app-server`).
func (p Process) Serves() bool {
	pid, _, ok := p.read()
	if !ok {
		return false
	}
	line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return slices.Contains(strings.Split(string(line), "\x00"), "app-server")
}

// namespace is in which processes have their numbers: a container has its own.
func namespace() string {
	ns, _ := os.Readlink("/proc/self/ns/pid") // "": none
	return ns
}

// stat is what /proc tells of a process.
type stat struct {
	name, state, started string
	parent               int
}

// process is the name of the process pid, whose stat it is.
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
		return st, errors.New("the process's state cannot be read")
	}
	rest := strings.Fields(string(data[end+1:])) // proc_pid_stat(5), from field 3 on
	if len(rest) < 20 {
		return st, errors.New("the process's state cannot be read")
	}
	st = stat{name: string(data[open+1 : end]), state: rest[0], started: rest[19]}
	st.parent, err = strconv.Atoi(rest[1])
	return st, err
}
