package claim

import (
	"context"
	"encoding/json"
	"io/fs"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// Stopped is what claims of others have kept an agent from. The newest of each agent and Doing is
// run-time state, a file each in format.StoppedDir, so that people see who is stuck. The guard notes
// it, without a server, and the server.
type Stopped struct {
	At    time.Time `json:"at"`
	Agent string    `json:"agent"` // "": nobody known
	Doing string    `json:"doing"` // DoingClaim, or what the guard stopped: "commit", "merge", "push", "edit"
	By    []Stopper `json:"by"`    // the first maxStoppers
}

// DoingClaim is in Stopped.Doing where a claim was refused.
const DoingClaim = "claim"

// Stopper is a claim that stood in the way.
type Stopper struct {
	File  string   `json:"file"`  // of the claim, in the tree
	Paths []string `json:"paths"` // or patterns that it covers, the first maxStoppers
}

const maxStoppers = 20

// NoteStopped notes that the claims have stopped an agent now. It is lost where the run-time state
// cannot be written: whoever is stopped is told all the same.
func NoteStopped(t *tree.Tree, at time.Time, agent, doing string, by []Blocked) {
	s := Stopped{At: at, Agent: agent, Doing: doing}
	for _, b := range by[:min(len(by), maxStoppers)] {
		s.By = append(s.By, Stopper{b.Claim.Path, b.Paths[:min(len(b.Paths), maxStoppers)]})
	}
	if data, err := json.Marshal(s); err == nil {
		_ = t.WriteRun(s.path(), data)
	}
}

func (s *Stopped) path() string {
	return format.StoppedDir + "/" + s.Doing + "-" + s.Agent
}

// ReadStopped lists what was noted. What is damaged is as lost, and what ctx leaves unread.
func ReadStopped(ctx context.Context, t *tree.Tree) (all []Stopped) {
	_ = t.Walk(ctx, format.StoppedDir, func(file string, _ fs.DirEntry) error {
		var s Stopped
		data, _, err := t.Read(file, format.MaxSmall)
		if err == nil && json.Unmarshal(data, &s) == nil && s.path() == file {
			all = append(all, s)
		}
		return nil
	})
	return all
}
