package page

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/index"
)

// item is one thing that waits for the person.
type item struct {
	Kind  string // mail, ask, owed, stopped, asleep, problem: decides how it looks
	Who   string
	What  string
	Why   string // what is asked for
	At    time.Time
	Link  string
	Agent string // the agent to nudge and to write to; "" for none
}

// waitingShown is what has happened since the person last looked.
type waitingShown struct {
	Looked time.Time // zero: unknown
	News   *maildir.News
}

// waitingMost is the most things of one kind that the first view shows.
const waitingMost = 50

// waiting shows what waits for the person, as the menu counts it: unread mail, acknowledgements to give and
// to get, questions, agents that claims have stopped, agents with mail that no session can be woken for,
// and invalid files.
func (h *Page) waiting(v *view) error {
	if err := v.in("waiting", "Waiting for you"); err != nil {
		return err
	}
	shown := waitingShown{Looked: v.lastLooked()}
	if !shown.Looked.IsZero() {
		var err error
		if shown.News, err = v.p.Since(v.ctx(), shown.Looked); err != nil {
			return err
		}
	}
	return v.show("waiting", shown)
}

// awayAfter is how long a person must be inactive to count as having been away.
const awayAfter = 10 * time.Minute

// lastLooked returns when the person looked at the project before they were away; zero if unknown. The
// browser stores it in a cookie of the project, so each browser counts separately.
func (v *view) lastLooked() (looked time.Time) {
	name := "looked-" + cookieName(v.r)
	var before, last int64 // the look before the last, and the last look, in seconds
	if c, err := v.r.Cookie(name); err == nil {
		_, _ = fmt.Sscanf(c.Value, "%d.%d", &before, &last) // a damaged cookie counts as unknown
	}
	now := v.Now.Unix()
	if now-last > int64(awayAfter/time.Second) {
		before = last
	}
	if v.r.Header.Get(fragmentHeader) == "" { // reloading a part of an open view is not a look
		http.SetCookie(v.w, &http.Cookie{
			Name:     name,
			Value:    fmt.Sprintf("%d.%d", before, now),
			Path:     v.at(),
			MaxAge:   int(sessionLasts / time.Second),
			HttpOnly: true,
			SameSite: http.SameSiteStrictMode,
		})
	}
	if before <= 0 || before > now {
		return looked
	}
	return time.Unix(before, 0)
}

func (v *view) waitingMail(page *maildir.InboxPage) (all []item) {
	for i := range page.Messages {
		d := &page.Messages[i]
		why := ""
		switch {
		case d.AckRequired:
			why = "asks for an acknowledgement"
		case d.IsQuestion():
			why = "asks for an answer"
		case d.Importance == "urgent" || d.Importance == "high":
			why = d.Importance
		}
		all = append(all, v.mailItem("mail", d, d.From, why))
	}
	return all
}

// waitingAcks lists acknowledgements that the person has read about and not given, and those that others
// owe.
func (v *view) waitingAcks() (all []item, err error) {
	page, err := v.myInbox(index.InboxQuery{AwaitingAck: true, Limit: waitingMost})
	if err != nil {
		return nil, err
	}
	for i := range page.Messages {
		d := &page.Messages[i]
		switch {
		case d.Kind == index.KindSent:
			all = append(all, v.mailItem("owed", d, firstOf(append(d.To, d.CC...)...), "has not acknowledged"))
		case d.Read: // else it is listed as mail
			all = append(all, v.mailItem("ask", d, d.From, "asks for an acknowledgement"))
		}
	}
	return all, nil
}

func (v *view) waitingQuestions() (all []item, err error) {
	if v.Me == "" {
		return nil, nil
	}
	open, err := v.box().Questions(v.ctx())
	for i := range open {
		if d := &open[i]; !d.AckRequired { // else it is listed as an acknowledgement
			all = append(all, v.mailItem("ask", d, d.From, "asks for an answer"))
		}
	}
	return all, err
}

// waitingStops lists the agents that claims of others have stopped.
func (v *view) waitingStops() (all []item, err error) {
	stops, err := v.p.Stops(v.ctx())
	for _, s := range stops {
		c := s.By[0].Claim
		why := ""
		if more := len(s.By) - 1; more > 0 {
			why = "and by " + counted(more, "other claim")
		}
		all = append(all, item{
			Kind: "stopped",
			Who:  firstOf(s.Agent, "Somebody"),
			What: s.Doing + " stopped: " + c.Pattern + " is held by " + c.Agent,
			Why:  why,
			At:   s.At,
			Link: v.at("claims") + "#" + claimAnchor(c.Path),
		})
	}
	return all, err
}

// counted returns a number of things in words.
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

func (v *view) mailItem(kind string, d *index.Delivery, who, why string) item {
	return item{
		Kind: kind,
		Who:  who,
		What: d.Subject,
		Why:  why,
		At:   d.Created,
		Link: v.linkTo(&d.MessageRow),
	}
}

func (v *view) waitingAgents() (all []item, err error) {
	asleep, err := v.p.Unwoken(v.ctx())
	if err != nil {
		return nil, err
	}
	for _, u := range asleep {
		what := strconv.Itoa(u.Unread) + " unread for " + v.Age(u.Since)
		why := "its sessions could not be woken"
		switch {
		case u.Never:
			why = "it never was a session"
		case u.Ended:
			why = "all its sessions have ended"
		}
		all = append(all, item{
			Kind:  "asleep",
			Who:   u.Agent,
			What:  what,
			Why:   why,
			At:    u.Since,
			Link:  v.at("agents") + "#" + u.Agent,
			Agent: u.Agent,
		})
	}
	return all, nil
}

func (v *view) waitingProblems() ([]item, error) {
	if v.Menu.Broken == 0 {
		return nil, nil
	}
	return []item{{
		Kind: "problem",
		Who:  "Files",
		What: counted(v.Menu.Broken, "file") + " cannot be read",
		Why:  "other mail is not affected",
		Link: v.at("problems"),
	}}, nil
}
