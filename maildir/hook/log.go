package hook

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

// Log is the store's hooks.log: one JSON object a line. The lines say when a hook began for a
// message (durable before the command starts, so that none runs twice), as which process, how it
// ended, and how far the feed of changes was worked through.
//
//	{"hook":"backend-1a2b3c4d/BlueLake/wake","message":"msg_…","begun":"2026-01-02T03:04:05.000000Z","timeout":60}
//	{"hook":"backend-1a2b3c4d/BlueLake/wake","message":"msg_…","pid":4711,"process":"…"}
//	{"hook":"backend-1a2b3c4d/BlueLake/wake","message":"msg_…","ended":"…","exit":0,"ms":12,"output":"…"}
//	{"mark":1767323045000017}
//
// When the ends take much room, the oldest are dropped. Beginnings stay, and then say "done". Safe
// for concurrent use.
type Log struct {
	file string
	now  func() time.Time

	mu     sync.Mutex
	f      *os.File
	begun  map[uint64]bool  // hook and message, hashed
	going  map[uint64]entry // of these, what has not ended: its beginning and its process
	mark   int64
	ends   int64 // bytes of lines that may be dropped
	most   int64 // of ends: then all but the last quarter are
	broken bool  // writing failed: what is in the file is not known to be durable
}

// entry is one line of the file.
type entry struct {
	Hook    string `json:"hook,omitempty"`
	Message string `json:"message,omitempty"`
	Begun   string `json:"begun,omitempty"`
	Timeout int    `json:"timeout,omitempty"` // seconds
	Done    bool   `json:"done,omitempty"`    // the run has ended, and the line that says so was dropped
	PID     int    `json:"pid,omitempty"`
	Process string `json:"process,omitempty"` // what tells the process from a later one of that number
	Ended   string `json:"ended,omitempty"`
	Exit    *int   `json:"exit,omitempty"`
	End     string `json:"end,omitempty"` // as End.Why
	MS      int64  `json:"ms,omitempty"`
	Output  string `json:"output,omitempty"`
	Mark    int64  `json:"mark,omitempty"`
}

// End is how a command ended.
type End struct {
	Exit   int    // status, -1 where there is none
	Why    string // "timeout", "signal: killed" and the like; "" where it exited by itself
	Took   time.Duration
	Output []byte // the last of what it printed
}

const (
	logFile = "hooks.log"
	maxEnds = 64 << 20 // bytes
)

// OpenLog opens the log of the store at root, making it where it is missing. now is the clock. The
// caller closes it. A store has one at a time. Errors: ErrUnavailable; nothing is open then.
func OpenLog(root string, now func() time.Time) (*Log, error) {
	l := &Log{
		file:  filepath.Join(root, logFile),
		now:   now,
		begun: map[uint64]bool{},
		going: map[uint64]entry{},
		most:  maxEnds,
	}
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

// CheckLog opens the log of the store at root as a server does, and closes it. It changes nothing.
// Errors: ErrUnavailable for what is no file; as of os.OpenFile.
func CheckLog(root string) error {
	f, err := openLogFile(filepath.Join(root, logFile), os.O_RDONLY)
	f.Close() // of nil, an error
	return err
}

// openLogFile opens the file. Errors: as of CheckLog.
func openLogFile(file string, flags int) (*os.File, error) {
	f, _, err := tree.OpenPlain(file, flags)
	return f, registry.WrongFile(err, refusal.HooksLogWrong, logFile)
}

// Close closes the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	return l.f.Close()
}

// read calls fn for every line. It leaves out lines that a crash cut short.
func (l *Log) read(fn func(line []byte, e entry) error) error {
	f, err := openLogFile(l.file, os.O_RDONLY)
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
		var e entry
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		if err := fn(line, e); err != nil {
			return err
		}
	}
}

// noteLine has the log know what a line says.
func (l *Log) noteLine(line []byte, e entry) error {
	k := pairHash(e.Hook, e.Message)
	switch {
	case e.Begun != "":
		l.begun[k] = true
		if !e.Done {
			l.going[k] = e
		}
		return nil
	case e.PID != 0:
		if o, ok := l.going[k]; ok {
			o.PID, o.Process = e.PID, e.Process
			l.going[k] = o
		}
	case e.Ended != "":
		delete(l.going, k)
	}
	l.mark = max(l.mark, e.Mark)
	l.ends += int64(len(line))
	return nil
}

// open opens the file for appending. It ends a last line that a crash cut short.
func (l *Log) open() error {
	f, err := openLogFile(l.file, os.O_RDWR|os.O_CREATE|os.O_APPEND)
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

// pairHash stands for a hook and a message. Two of a million pairs share a hash with a probability
// of 1 to 10^7.
func pairHash(hook, message string) uint64 {
	sum := sha256.Sum256([]byte(hook + "\x00" + message))
	return binary.BigEndian.Uint64(sum[:8])
}

// Ran reports whether the hook has begun for the message.
func (l *Log) Ran(h *Hook, message string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begun[pairHash(h.Key(), message)]
}

// Begin notes, durably, that the hook begins for the message; false when it has before. After an
// error the hook must not begin.
func (l *Log) Begin(h *Hook, message string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := pairHash(h.Key(), message)
	if l.begun[k] {
		return false, nil
	}
	e := entry{
		Hook:    h.Key(),
		Message: message,
		Begun:   format.FormatTime(l.now()),
		Timeout: h.Timeout,
	}
	if err := l.append(e); err != nil {
		return false, refusal.Disk(err)
	}
	if err := l.f.Sync(); err != nil {
		l.broken = true
		return false, refusal.Disk(err)
	}
	l.begun[k], l.going[k] = true, e
	return true, nil
}

// Started notes as which process a run goes on; process tells it from a later one of that number.
// The note need not survive a crash of the machine: the process does not.
func (l *Log) Started(r *Run, pid int, process string) error {
	return l.add(entry{
		Hook:    r.Hook.Key(),
		Message: r.ID,
		PID:     pid,
		Process: process,
	})
}

// End notes how a run ended. The note need not survive a crash.
func (l *Log) End(r *Run, end End) error {
	return l.add(entry{
		Hook:    r.Hook.Key(),
		Message: r.ID,
		Ended:   format.FormatTime(l.now()),
		Exit:    &end.Exit,
		End:     end.Why,
		MS:      end.Took.Milliseconds(),
		Output:  strings.ToValidUTF8(string(end.Output), "\uFFFD"),
	})
}

// add is append for one that does not hold the lock.
func (l *Log) add(e entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return refusal.Disk(l.append(e))
}

// Abandoned is a run whose server ended before it.
type Abandoned struct {
	Hook, Message string // as in the log
	PID           int    // the leader of its process group; 0 where that was not noted
	Process       string // as given to Started
	Begun         time.Time
	Timeout       int // seconds
}

// Abandoned returns the runs that have begun and not ended. Before anything begins here, these are
// an earlier server's.
func (l *Log) Abandoned() (all []Abandoned) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.going {
		begun, _ := format.ParseTime(o.Begun) // the zero time: long ago
		all = append(all, Abandoned{
			Hook:    o.Hook,
			Message: o.Message,
			PID:     o.PID,
			Process: o.Process,
			Begun:   begun,
			Timeout: o.Timeout,
		})
	}
	return all
}

// EndAbandoned notes the end of such a run. The note need not survive a crash.
func (l *Log) EndAbandoned(a *Abandoned, why string) error {
	return l.add(entry{
		Hook:    a.Hook,
		Message: a.Message,
		Ended:   format.FormatTime(l.now()),
		End:     why,
	})
}

// Mark is how far the feed of changes was worked through.
func (l *Log) Mark() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mark
}

// SetMark notes how far the feed of changes was worked through. The note need not survive a crash:
// what is looked at again begins no second time.
func (l *Log) SetMark(mark int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mark <= l.mark {
		return nil
	}
	return refusal.Disk(l.append(entry{Mark: mark}))
}

// append writes a line, after compacting the file where that is due.
func (l *Log) append(e entry) error {
	if l.broken || l.ends > l.most {
		if err := l.compact(); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return err
	}
	if _, err := l.f.Write(b.Bytes()); err != nil {
		l.broken = true
		return err
	}
	if e.Begun == "" {
		return l.noteLine(b.Bytes(), e)
	}
	return nil
}

// compact writes the file anew, durably, with all beginnings, the mark and the last ends.
func (l *Log) compact() error {
	var b bytes.Buffer
	skip, ends := l.ends-l.most/4, int64(0)
	err := l.read(func(line []byte, e entry) error {
		_, going := l.going[pairHash(e.Hook, e.Message)]
		switch {
		case e.Begun != "" && !e.Done && !going:
			e.Done = true
			return json.NewEncoder(&b).Encode(e)
		case e.Begun == "":
			if skip -= int64(len(line)); e.Mark > 0 || skip > 0 && !(e.PID != 0 && going) {
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
