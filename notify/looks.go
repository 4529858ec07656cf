package notify

import (
	"maps"
	"sync"
	"time"
)

// Looks records when the user's screens last showed each thread. The zero value is ready to use. Looks is safe for
// concurrent use.
type Looks struct {
	mu sync.Mutex
	at map[shown]time.Time
}

type shown struct{ project, thread string }

// lookLasts is the time for which Looks remembers a thread.
const lookLasts = time.Minute

// Shown records that one of the user's screens is showing the thread now.
func (l *Looks) Shown(project, thread string) { l.shownAt(project, thread, time.Now()) }

func (l *Looks) shownAt(project, thread string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.at, func(_ shown, at time.Time) bool { return now.Sub(at) > lookLasts })
	if l.at == nil {
		l.at = map[shown]time.Time{}
	}
	l.at[shown{project, thread}] = now
}

// since reports whether a screen has shown the thread since the given time. It returns false if l is nil.
func (l *Looks) since(project, thread string, since time.Time) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.at[shown{project, thread}].Before(since)
}
