package claim

import (
	"context"
	"encoding/json"
	"io/fs"
	"path"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// Stopped records that another agent's claim blocked an agent, so that users can see which agents are stuck. The
// newest record for each combination of agent, Doing and claim is stored in a file of run-time state in
// format.StoppedDir. Both the server and the guard write these files, so the guard works without a server.
type Stopped struct {
	At    time.Time `json:"at"`
	Agent string    `json:"agent"` // empty if unknown
	Doing string    `json:"doing"` // DoingClaim, or the stopped action: "commit", "merge", "push", "edit"
	File  string    `json:"file"`  // the claim's file in the tree
	Paths []string  `json:"paths"` // the first maxStoppers paths or patterns that the claim covers
}

// StoppedFor is how long a blocked agent is considered to be waiting.
const StoppedFor = 24 * time.Hour

// DoingClaim is the value of Stopped.Doing if a claim was refused.
const DoingClaim = "claim"

const maxStoppers = 20

// NoteStopped records that the claims listed in the argument by have just blocked an agent. It ignores write errors,
// because the agent gets the refusal in any case.
func NoteStopped(t *tree.Tree, at time.Time, agent, doing string, by []Blocked) {
	for _, b := range by[:min(len(by), maxStoppers)] {
		s := Stopped{at, agent, doing, b.Claim.Path, b.Paths[:min(len(b.Paths), maxStoppers)]}
		if data, err := json.Marshal(s); err == nil {
			_ = t.WriteRun(s.path(), data)
		}
	}
	var old []string // remove old records, which would otherwise accumulate
	eachStopped(context.Background(), t, func(file string, s *Stopped) {
		if s == nil || at.Sub(s.At) >= StoppedFor {
			old = append(old, file)
		}
	})
	for _, file := range old {
		_ = t.RemoveRun(file)
	}
}

func (s *Stopped) path() string {
	return format.StoppedDir + "/" + s.Doing + "-" + s.Agent + "-" + strings.TrimSuffix(path.Base(s.File), ".json")
}

// ReadStopped returns the records that NoteStopped wrote. If ctx is canceled, it returns only the records read so far.
func ReadStopped(ctx context.Context, t *tree.Tree) (all []Stopped) {
	eachStopped(ctx, t, func(_ string, s *Stopped) {
		if s != nil {
			all = append(all, *s)
		}
	})
	return all
}

// eachStopped calls found for each readable file in format.StoppedDir, until ctx is canceled. If a file does not
// contain a record, s is nil. Earlier versions wrote one such file for each agent and Doing.
func eachStopped(ctx context.Context, t *tree.Tree, found func(file string, s *Stopped)) {
	_ = t.Walk(ctx, format.StoppedDir, func(file string, _ fs.DirEntry) error {
		data, _, err := t.Read(file, format.MaxSmall)
		if err != nil {
			return nil
		}
		s := &Stopped{}
		if json.Unmarshal(data, s) != nil || s.path() != file {
			s = nil
		}
		found(file, s)
		return nil
	})
}
