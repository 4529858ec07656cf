package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/registry"
	"mailtree/maildir/tree"
)

// Log is the store's folder "hooks". It contains one mark for each run of a hook for a message. A mark is a file that
// is created before the command starts, so that no run happens twice. Each line of a mark is a JSON object. The lines
// record when the run began, its process, and how it ended.
//
//	{"hook":"backend-1a2b3c4d/BlueLake/wake","message":"msg_…","begun":"2026-01-02T03:04:05.000000Z","timeout":60}
//	{"hook":"backend-1a2b3c4d/BlueLake/wake","message":"msg_…","pid":4711,"process":"…"}
//	{"hook":"backend-1a2b3c4d/BlueLake/wake","message":"msg_…","ended":"…","exit":0,"ms":12,"output":"…"}
//
// The file "changes" in the folder records how far the feed of changes has been processed. Marks that were last written
// more than Kept ago are removed. Except for SetMark and Mark, Log is safe for concurrent use.
type Log struct {
	dir  string
	now  func() time.Time
	mark int64
	left []Abandoned
}

// Kept is how long marks are kept. No hook runs for a message from this store that is older than Kept.
const Kept = 31 * 24 * time.Hour

// entry is one line of a mark.
type entry struct {
	Hook    string `json:"hook,omitempty"`
	Message string `json:"message,omitempty"`
	Begun   string `json:"begun,omitempty"`
	Timeout int    `json:"timeout,omitempty"` // seconds
	Done    bool   `json:"done,omitempty"`    // in an old log: the run has ended
	PID     int    `json:"pid,omitempty"`
	Process string `json:"process,omitempty"` // identifies the process, because its pid may be reused
	Ended   string `json:"ended,omitempty"`
	Exit    *int   `json:"exit,omitempty"`
	End     string `json:"end,omitempty"` // same as End.Why
	MS      int64  `json:"ms,omitempty"`
	Output  string `json:"output,omitempty"`
	Mark    int64  `json:"mark,omitempty"` // in an old log: number of the newest change that has been processed
}

// End is the result of a command.
type End struct {
	Exit   int    // exit status; -1 if there is none
	Why    string // "timeout", "signal: killed" and so on; empty if the command exited on its own
	Took   time.Duration
	Output []byte // the last part of the command's output
}

// LogDir is the folder with the marks, in the store's folder.
const LogDir = "hooks"

const (
	oldLog      = "hooks.log" // written by earlier versions
	changesFile = "changes"
	markEnd     = ".run"
)

// OpenLog opens the log of the store at root, or creates it if it is missing. now is the clock. OpenLog removes old
// marks, and incomplete marks left by a crash, because their commands were never started. A store must not have more
// than one open log at a time. OpenLog returns ErrUnavailable if it fails.
func OpenLog(root string, now func() time.Time) (*Log, error) {
	l := &Log{dir: filepath.Join(root, LogDir), now: now}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return nil, refusal.Disk(err)
	}
	if err := l.takeOld(filepath.Join(root, oldLog)); err != nil {
		return nil, refusal.Disk(err)
	}
	if err := l.loadMarks(); err != nil {
		return nil, refusal.Disk(err)
	}
	return l, nil
}

// CheckLog checks whether a server could open an earlier version's log, if there is one. It opens the log and closes it
// again without changing it. It returns ErrUnavailable if the log is not a regular file, or any error from os.OpenFile.
func CheckLog(root string) error {
	f, err := openOld(filepath.Join(root, oldLog))
	if err != nil {
		return err
	}
	return f.Close()
}

func openOld(file string) (*os.File, error) {
	f, _, err := tree.OpenPlain(file, os.O_RDONLY)
	return f, registry.WrongFile(err, refusal.Unavailable("The store's hooks.log is {why}. Replace it with a "+
		"valid file, or remove it; until then, no hooks run."), oldLog)
}

// takeOld converts the lines of an old log into marks and removes the old log.
func (l *Log) takeOld(file string) error {
	f, err := openOld(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	marks := map[string][]byte{}
	for line := range bytes.Lines(data) {
		var e entry
		if json.Unmarshal(line, &e) != nil { // a crash interrupted the write of this line
			continue
		}
		l.mark = max(l.mark, e.Mark)
		begun, _ := format.ParseTime(e.Begun)
		if mark := l.file(e.Hook, e.Message); e.Begun != "" && l.now().Sub(begun) < Kept || marks[mark] != nil {
			marks[mark] = append(marks[mark], line...)
		}
	}
	for mark, lines := range marks {
		if err := tree.WriteFile(mark, lines); err != nil {
			return err
		}
	}
	if err := l.writeMark(); err != nil {
		return err
	}
	return os.Remove(file)
}

// loadMarks reads the position in the feed, and the marks that are not too old.
func (l *Log) loadMarks() error {
	data, err := os.ReadFile(filepath.Join(l.dir, changesFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l.mark, _ = strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err := l.prune(); err != nil {
		return err
	}
	marks, err := filepath.Glob(filepath.Join(l.dir, "*"+markEnd))
	if err != nil {
		return err
	}
	for _, mark := range marks {
		if err := l.loadMark(mark); err != nil {
			return err
		}
	}
	return nil
}

// prune removes files from the folder that were last written more than Kept ago.
func (l *Log) prune() error {
	files, err := os.ReadDir(l.dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			return err
		}
		if f.Name() != changesFile && time.Since(info.ModTime()) > Kept {
			if err := os.Remove(filepath.Join(l.dir, f.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// loadMark reads a mark. If the mark's first line is incomplete, loadMark removes it, because the command was never
// started.
func (l *Log) loadMark(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var a Abandoned
	ended := false
	for line := range bytes.Lines(data) {
		var e entry
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		if e.Begun != "" {
			begun, _ := format.ParseTime(e.Begun) // if the time is invalid, begun is zero, which counts as long ago
			a = Abandoned{Hook: e.Hook, Message: e.Message, Begun: begun, Timeout: e.Timeout}
		}
		if e.PID != 0 {
			a.PID, a.Process = e.PID, e.Process
		}
		ended = ended || e.Done || e.Ended != ""
	}
	switch {
	case a.Hook == "":
		return os.Remove(file)
	case !ended:
		l.left = append(l.left, a)
	}
	return nil
}

func (l *Log) file(hook, message string) string {
	return filepath.Join(l.dir, hashName(hook, message)+markEnd)
}

// Ran reports whether a run of the hook for the message has begun. The result is reliable only while the mark is kept.
func (l *Log) Ran(h *Hook, message string) bool {
	_, err := os.Lstat(l.file(h.Key(), message))
	return err == nil
}

// Begin durably writes the mark for a run of the hook for the message. It returns false if the mark already exists.
// After an error, the hook must not run.
func (l *Log) Begin(h *Hook, message string) (bool, error) {
	file := l.file(h.Key(), message)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, refusal.Disk(err)
	}
	err = writeEntry(f, entry{
		Hook:    h.Key(),
		Message: message,
		Begun:   format.FormatTime(l.now()),
		Timeout: h.Timeout,
	})
	if err == nil {
		err = f.Sync()
	}
	f.Close()
	if err == nil {
		err = tree.SyncDir(l.dir)
	}
	if err != nil {
		os.Remove(file) // if this also fails, the hook never runs for the message
		return false, refusal.Disk(err)
	}
	return true, nil
}

func writeEntry(f *os.File, e entry) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return err
	}
	_, err := f.Write(b.Bytes())
	return err
}

// add appends a line to a mark. The line may be lost if the machine crashes.
func (l *Log) add(e entry) error {
	f, err := os.OpenFile(l.file(e.Hook, e.Message), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return refusal.Disk(err)
	}
	defer f.Close()
	return refusal.Disk(writeEntry(f, e))
}

// Started records a run's process. process identifies it, because its pid may be reused.
func (l *Log) Started(r *Run, pid int, process string) error {
	return l.add(entry{Hook: r.Hook.Key(), Message: r.ID, PID: pid, Process: process})
}

// End records the result of the run.
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

// Abandoned is a run that was still in progress when its server stopped.
type Abandoned struct {
	Hook, Message string // hook and message, as in the log
	PID           int    // leader of the run's process group; 0 if not recorded
	Process       string // as passed to Started
	Begun         time.Time
	Timeout       int // seconds
}

// Abandoned returns the runs from earlier servers that had begun but not ended when the log was opened.
func (l *Log) Abandoned() []Abandoned { return l.left }

// EndAbandoned records the end of an abandoned run.
func (l *Log) EndAbandoned(a *Abandoned, why string) error {
	return l.add(entry{Hook: a.Hook, Message: a.Message, Ended: format.FormatTime(l.now()), End: why})
}

// Mark returns the number of the newest change in the feed that has been processed.
func (l *Log) Mark() int64 { return l.mark }

// SetMark records the number of the newest change in the feed that has been processed, and removes old marks.
func (l *Log) SetMark(mark int64) error {
	if mark <= l.mark {
		return nil
	}
	l.mark = mark
	if err := l.writeMark(); err != nil {
		return refusal.Disk(err)
	}
	return refusal.Disk(l.prune())
}

func (l *Log) writeMark() error {
	return tree.WriteFile(filepath.Join(l.dir, changesFile), []byte(strconv.FormatInt(l.mark, 10)+"\n"))
}
