package maildir

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/registry"
	"mailtree/maildir/tree"
)

// HookLog is the store's hooks.log: one JSON object a line, when a hook began for a message (durable before the command
// starts, so that none runs twice), as which process, how it ended, and how far the feed of changes was worked through.
//
//	{"hook":"backend-1a2b3c4d/BlueLake/wake","message":"msg_…","begun":"2026-01-02T03:04:05.000000Z","timeout":60}
//	{"hook":"backend-1a2b3c4d/BlueLake/wake","message":"msg_…","pid":4711,"process":"…"}
//	{"hook":"backend-1a2b3c4d/BlueLake/wake","message":"msg_…","ended":"…","exit":0,"ms":12,"output":"…"}
//	{"mark":1767323045000017}
//
// Ends are dropped, oldest first, when they are much; beginnings stay, and then say "done". Safe for concurrent use.
type HookLog struct {
	file string
	now  func() time.Time

	mu     sync.Mutex
	f      *os.File
	begun  map[uint64]bool     // hook and message, hashed
	going  map[uint64]hookLine // of these, what has not ended: its beginning and its process
	mark   int64
	ends   int64 // bytes of lines that may be dropped
	most   int64 // of ends: then all but the last quarter are
	broken bool  // writing failed: what is in the file is not known to be durable
}

type hookLine struct {
	Hook    string `json:"hook,omitempty"`
	Message string `json:"message,omitempty"`
	Begun   string `json:"begun,omitempty"`
	Timeout int    `json:"timeout,omitempty"` // seconds
	Done    bool   `json:"done,omitempty"`    // it has ended, and the line that says so was dropped
	PID     int    `json:"pid,omitempty"`
	Process string `json:"process,omitempty"` // what tells the process from a later one of that number
	Ended   string `json:"ended,omitempty"`
	Exit    *int   `json:"exit,omitempty"`
	End     string `json:"end,omitempty"` // "timeout", "signal: killed" and the like, where it did not exit by itself
	MS      int64  `json:"ms,omitempty"`
	Output  string `json:"output,omitempty"`
	Mark    int64  `json:"mark,omitempty"`
}

// HookEnd is how a command ended.
type HookEnd struct {
	Exit   int    // status, -1 where there is none
	Why    string // how it ended where not by itself; "" else
	Took   time.Duration
	Output []byte // the last of what it printed
}

const (
	hookLogFile = "hooks.log"
	maxEnds     = 64 << 20 // bytes
)

// OpenHookLog opens the log, making it where it is missing. The caller closes it. A store has one at a time.
// Errors: ErrUnavailable; nothing is open then.
func (s *Store) OpenHookLog() (*HookLog, error) {
	l := &HookLog{file: filepath.Join(s.cfg.Root, hookLogFile), now: s.cfg.Now, begun: map[uint64]bool{}, going: map[uint64]hookLine{}, most: maxEnds}
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.read(l.noteLine)
	switch {
	case err != nil:
	case l.ends > l.most:
		err = l.compact()
	default:
		err = l.open()
	}
	if err != nil {
		if l.f != nil {
			l.f.Close()
		}
		return nil, refusal.Disk(err)
	}
	return l, nil
}

// openHooksLog opens the file. Errors: ErrUnavailable for what is no file; as of os.OpenFile.
func openHooksLog(file string, flags int) (*os.File, error) {
	f, _, err := tree.OpenPlain(file, flags)
	return f, registry.WrongFile(err, refusal.HooksLogWrong, hookLogFile)
}

// Close closes the file.
func (l *HookLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	return l.f.Close()
}

// read calls fn for every line that is one; what a crash cut short is left out.
func (l *HookLog) read(fn func(line []byte, h hookLine) error) error {
	f, err := openHooksLog(l.file, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for r := bufio.NewReaderSize(f, 1<<16); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var h hookLine
		if json.Unmarshal(line, &h) != nil {
			continue
		}
		if err := fn(line, h); err != nil {
			return err
		}
	}
}

func (l *HookLog) noteLine(line []byte, h hookLine) error {
	k := hookHash(h.Hook, h.Message)
	switch {
	case h.Begun != "":
		l.begun[k] = true
		if !h.Done {
			l.going[k] = h
		}
		return nil
	case h.PID != 0:
		if o, ok := l.going[k]; ok {
			o.PID, o.Process = h.PID, h.Process
			l.going[k] = o
		}
	case h.Ended != "":
		delete(l.going, k)
	}
	l.mark = max(l.mark, h.Mark)
	l.ends += int64(len(line))
	return nil
}

// open opens the file for appending; a last line that a crash cut short is ended.
func (l *HookLog) open() error {
	f, err := openHooksLog(l.file, os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return refusal.Disk(err)
	}
	l.f = f
	var last [1]byte
	fi, err := f.Stat()
	if err != nil { // a line that a crash cut short would spoil the next
		return refusal.Disk(err)
	}
	if fi.Size() > 0 {
		if _, err := f.ReadAt(last[:], fi.Size()-1); err != nil || last[0] != '\n' {
			_, err = f.WriteString("\n")
			return refusal.Disk(err)
		}
		return nil
	}
	return refusal.Disk(tree.SyncDir(filepath.Dir(l.file)))
}

// hookHash stands for a hook and a message. Two of a million pairs share one with a probability of 1 to 10^7.
func hookHash(hook, message string) uint64 {
	sum := sha256.Sum256([]byte(hook + "\x00" + message))
	return binary.BigEndian.Uint64(sum[:8])
}

// Ran reports whether the hook has begun for the message.
func (l *HookLog) Ran(h *Hook, message string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begun[hookHash(h.key(), message)]
}

// beginRun notes, durably, that the hook begins for the message; false when it has before. With an error it must not begin.
func (l *HookLog) beginRun(h *Hook, message string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := hookHash(h.key(), message)
	if l.begun[k] {
		return false, nil
	}
	line := hookLine{Hook: h.key(), Message: message, Begun: format.FormatTime(l.now()), Timeout: h.Timeout}
	if err := l.append(line); err != nil {
		return false, refusal.Disk(err)
	}
	if err := l.f.Sync(); err != nil {
		l.broken = true
		return false, refusal.Disk(err)
	}
	l.begun[k], l.going[k] = true, line
	return true, nil
}

// Started notes as which process a run goes on; process is what tells it from a later one of that number. It need not
// survive a crash of the machine: the process does not.
func (l *HookLog) Started(r *HookRun, pid int, process string) error {
	return l.add(hookLine{Hook: r.Hook.key(), Message: r.ID, PID: pid, Process: process})
}

// End notes how a run ended. It need not survive a crash.
func (l *HookLog) End(r *HookRun, e HookEnd) error {
	return l.add(hookLine{Hook: r.Hook.key(), Message: r.ID, Ended: format.FormatTime(l.now()), Exit: &e.Exit, End: e.Why, MS: e.Took.Milliseconds(), Output: strings.ToValidUTF8(string(e.Output), "\uFFFD")})
}

func (l *HookLog) add(h hookLine) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return refusal.Disk(l.append(h))
}

// Abandoned is a run whose server ended before it.
type Abandoned struct {
	Hook, Message string // as in the log
	PID           int    // the leader of its process group; 0 where that was not noted
	Process       string // as given to Started
	Begun         time.Time
	Timeout       int // seconds
}

// Abandoned returns the runs that have begun and not ended; before anything begins here these are an earlier server's.
func (l *HookLog) Abandoned() (all []Abandoned) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.going {
		begun, _ := format.ParseTime(o.Begun) // the zero time: long ago
		all = append(all, Abandoned{Hook: o.Hook, Message: o.Message, PID: o.PID, Process: o.Process, Begun: begun, Timeout: o.Timeout})
	}
	return all
}

// EndAbandoned notes the end of such a run. It need not survive a crash.
func (l *HookLog) EndAbandoned(a *Abandoned, why string) error {
	return l.add(hookLine{Hook: a.Hook, Message: a.Message, Ended: format.FormatTime(l.now()), End: why})
}

// Mark is how far the feed of changes was worked through.
func (l *HookLog) Mark() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mark
}

// SetMark notes how far the feed of changes was worked through. It need not survive a crash: what is looked at again
// begins no second time.
func (l *HookLog) SetMark(mark int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mark <= l.mark {
		return nil
	}
	return refusal.Disk(l.append(hookLine{Mark: mark}))
}

func (l *HookLog) append(h hookLine) error {
	if l.broken || l.ends > l.most {
		if err := l.compact(); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(h); err != nil {
		return err
	}
	if _, err := l.f.Write(b.Bytes()); err != nil {
		l.broken = true
		return err
	}
	if h.Begun == "" {
		return l.noteLine(b.Bytes(), h)
	}
	return nil
}

// compact writes the file anew, durably, with all beginnings, the mark and the last ends.
func (l *HookLog) compact() error {
	var b bytes.Buffer
	skip, ends := l.ends-l.most/4, int64(0)
	err := l.read(func(line []byte, h hookLine) error {
		_, going := l.going[hookHash(h.Hook, h.Message)]
		switch {
		case h.Begun != "" && !h.Done && !going:
			h.Done = true
			return json.NewEncoder(&b).Encode(h)
		case h.Begun == "":
			if skip -= int64(len(line)); h.Mark > 0 || skip > 0 && !(h.PID != 0 && going) {
				return nil
			}
			ends += int64(len(line))
		}
		b.Write(line)
		return nil
	})
	if err != nil {
		return err
	}
	if l.mark > 0 {
		fmt.Fprintf(&b, "{\"mark\":%d}\n", l.mark)
	}
	if err := tree.WriteFile(l.file, b.Bytes()); err != nil {
		return err
	}
	if l.f != nil {
		l.f.Close()
	}
	l.broken, l.ends = false, ends
	return l.open()
}
