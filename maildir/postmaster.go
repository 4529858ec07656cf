package maildir

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// advice is a message of Postmaster.
type advice struct {
	to      string
	about   string // the idempotency key: Postmaster tells each matter once
	subject string
	body    string
	thread  string   // "": one of its own
	settled []string // ids of earlier messages of Postmaster to the agent that this one replaces: they become read
	answers string   // id of the message that it is about; "": none

	boundless bool // it does not count among mostAdvice
}

// mostAdvice is the most messages that Postmaster writes to one agent in an hour, because a script may save
// any number of files. One further message says that there is more.
const mostAdvice = 20

// adviceCount counts Postmaster's messages of the current hour, by agent. It is safe for concurrent use.
type adviceCount struct {
	mu    sync.Mutex
	hour  time.Time
	wrote map[string]int
}

// count adds a message to the agent and returns the agent's count in the hour of now.
func (c *adviceCount) count(agent string, now time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if hour := now.Truncate(time.Hour); !hour.Equal(c.hour) {
		c.hour, c.wrote = hour, map[string]int{}
	}
	c.wrote[agent]++
	return c.wrote[agent]
}

// advise delivers a message of Postmaster, unless it was delivered before. It returns the errors of the
// writer.
func (p *Project) advise(ctx context.Context, a advice) error {
	told, err := p.store.index.Keyed(ctx, p.Slug, format.Postmaster, a.about)
	if err != nil || len(told) > 0 {
		return err
	}
	now := p.store.cfg.Now().UTC()
	n := 0
	if !a.boundless {
		n = p.advised.count(a.to, now)
	}
	switch {
	case n == mostAdvice+1:
		a.about = "more " + a.to + now.Format(" 2006-01-02T15")
		a.subject, a.body = "More files need mending", moreAdvice
	case n > mostAdvice:
		return nil
	}
	tx := &writer.Tx{Op: writer.Op{Verb: "send", Agent: format.Postmaster}, Facts: []string{keyFact(format.Postmaster, a.about), markFact(a.to)}}
	tx.Plan = func(g *writer.Group) error {
		told, err := p.store.index.Keyed(g.Ctx, p.Slug, format.Postmaster, a.about)
		if err != nil || len(told) > 0 {
			return err
		}
		if err := p.planMarking(g, tx, a.to, settled(a.settled)); err != nil {
			return err
		}
		return p.planMessage(g, tx, &format.Message{
			Project:    p.name(),
			From:       format.Postmaster,
			ThreadID:   a.thread,
			InReplyTo:  a.answers,
			To:         []string{a.to},
			Subject:    a.subject,
			Importance: format.Normal,
			Key:        a.about,
			Origin:     format.Origin{Auth: "uid:" + strconv.Itoa(p.store.cfg.User())},
			Body:       a.body,
		}, nil)
	}
	return p.Writer.Do(ctx, tx)
}

const moreAdvice = "More of your files in the mail tree need mending than I write of one by one. Those that cannot be sent lie in your " +
	"outbox still, and each is listed among the problems of the store."

// tellOutdone tells the holders of exclusive claims that do not hold, because another agent has an earlier
// claim of the same path, once for each claim. The server grants no second claim, but two may be in force
// after a clock jumped forward and back, or if people make claims by hand.
func (p *Project) tellOutdone(ctx context.Context) error {
	live, err := p.selectClaims(ctx, func(c *claim.Row, live bool) bool { return live && c.Exclusive })
	if err != nil {
		return err
	}
	holds := map[string]*claim.Row{} // by pattern; claims are sorted by age
	for i := range live {
		c := &live[i]
		first := holds[c.Pattern]
		if first == nil || first.Agent == c.Agent {
			holds[c.Pattern] = cmp.Or(first, c)
			continue
		}
		err := p.advise(ctx, advice{
			to:      c.Agent,
			about:   "outdone " + tree.SHA256([]byte(c.Path + c.Created.String()))[:32],
			subject: "Your claim does not hold: " + format.Cut(format.Printable(c.Pattern), 900),
			body: fmt.Sprintf("You and %s both have an exclusive claim of %s. %s's is older, so it holds, and yours does not: release yours, "+
				"and ask %s about your changes.", first.Agent, format.Printable(c.Pattern), first.Agent, first.Agent),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// savedWords name the fields of a refusal as the header of a file does.
var savedWords = refusal.Words{Args: map[refusal.Field]string{
	refusal.From:        "from",
	refusal.Recipients:  "to, cc or bcc",
	refusal.To:          "to",
	refusal.CC:          "cc",
	refusal.BCC:         "bcc",
	refusal.Subject:     "subject",
	refusal.Importance:  "importance",
	refusal.Thread:      "thread_id",
	refusal.Key:         "key",
	refusal.InReplyTo:   "in_reply_to",
	refusal.Message:     "in_reply_to",
	refusal.References:  "references",
	refusal.Attachments: "attachments",
}}

// notSent begins the subject of a message about a file in an outbox. The path follows.
const notSent = "Not sent: "

// unsentThread returns the id of the thread of Postmaster's messages about a file in an outbox.
func unsentThread(path string) string { return "unsent-" + tree.SHA256([]byte(path))[:16] }

// settled marks messages of Postmaster as read whose matter is settled.
func settled(ids []string) marking { return marking{verb: "read", ids: ids, page: true} }

// tellUnsent tells an author that a file in the outbox was not sent, and why, once for the same content.
// What Postmaster said of the file before becomes read.
func (p *Project) tellUnsent(ctx context.Context, path string, data []byte, why error) error {
	before, err := p.unreadAbout(ctx, path)
	if err != nil {
		return err
	}
	return p.advise(ctx, advice{
		to:      format.Locate(path).Agent,
		about:   "unsent " + tree.SHA256(append([]byte(path+"\n"), data...))[:32],
		thread:  unsentThread(path),
		settled: before,
		subject: notSent + format.Cut(format.Printable(path), 900),
		body: fmt.Sprintf("Your file was not sent:\n\n    %s\n\n%s\n\nIt stays where it is. Mend it and save it: it is sent once it "+
			"has not changed for two seconds. If it is not to be sent, delete it or move it to your drafts.",
			format.Printable(path), savedWords.Explain(why)),
	})
}

// withdrawUnsent marks as read what Postmaster said of a file in an outbox that was sent or removed since.
func (p *Project) withdrawUnsent(ctx context.Context, path string) error {
	ids, err := p.unreadAbout(ctx, path)
	if err != nil || len(ids) == 0 {
		return err
	}
	agent := format.Locate(path).Agent
	tx := &writer.Tx{
		Op:    writer.Op{Verb: "withdraw", Agent: format.Postmaster, ID: ids[0], Summary: format.Postmaster + " " + ids[0]},
		Facts: []string{markFact(agent)},
		IDs:   ids,
	}
	tx.Plan = func(g *writer.Group) error { return p.planMarking(g, tx, agent, settled(ids)) }
	return p.Writer.Do(ctx, tx)
}

// unreadAbout returns the ids of Postmaster's messages about a file in an outbox that its author has not read.
func (p *Project) unreadAbout(ctx context.Context, path string) (ids []string, err error) {
	rows, err := p.store.index.Thread(ctx, index.ThreadQuery{Project: p.Slug, Thread: unsentThread(path)})
	if err != nil {
		return nil, err
	}
	var told []string
	for i := range rows {
		// That of another machine may have a file of that name there.
		if _, here := p.store.verifiedHere(&rows[i].Message); here && rows[i].From == format.Postmaster {
			told = append(told, rows[i].ID)
		}
	}
	if len(told) == 0 {
		return nil, nil
	}
	copies, err := p.store.index.Deliveries(ctx, p.Slug, format.Locate(path).Agent, told)
	for i := range copies {
		if !copies[i].Read {
			ids = append(ids, copies[i].ID)
		}
	}
	return ids, err
}

// mostTold is how many of an agent's unread messages pathsTold looks at.
const mostTold = 200

// pathsTold returns the paths of files of which Postmaster wrote to agents that have not read it.
func (p *Project) pathsTold(ctx context.Context) (paths []string, err error) {
	agents, err := p.Agents(ctx)
	if err != nil {
		return nil, err
	}
	for i := range agents {
		if agents[i].Unread == 0 {
			continue
		}
		unread, err := p.store.index.OldestUnread(ctx, p.Slug, agents[i].Name, mostTold)
		if err != nil {
			return nil, err
		}
		for _, d := range unread {
			path, found := strings.CutPrefix(d.Subject, notSent)
			outbox := format.Locate(path).Kind == format.KindOutbox
			if found && outbox && d.From == format.Postmaster && d.ThreadID == unsentThread(path) {
				paths = append(paths, path)
			}
		}
	}
	return paths, nil
}

// tellOfEdit tells the owner of a mailbox that editing a copy changes nothing, once for each message. See
// docs/tree.md, "Copies".
func (p *Project) tellOfEdit(ctx context.Context, path string) error {
	at := format.Locate(path)
	m, err := p.store.index.Message(ctx, p.Slug, at.ID, index.WithoutBody, nil)
	if err != nil || m == nil || format.Locate(m.Path).Kind != format.KindCanonical {
		return err
	}
	sum := func(path string) (*[32]byte, error) {
		data, _, err := p.Tree.Read(path, p.Tree.MaxFile())
		return copySum(at.ID, data), tree.MachineFault(err)
	}
	copied, err := sum(path)
	if err != nil {
		return err
	}
	canonical, err := sum(m.Path)
	if err != nil || copied == nil || canonical == nil || *copied == *canonical {
		return err
	}
	return p.advise(ctx, advice{
		to:      at.Agent,
		about:   "edit " + tree.SHA256([]byte(at.Agent + "\n" + at.ID))[:32],
		subject: "An edit without effect: " + format.Cut(m.Subject, 900),
		body: fmt.Sprintf("This copy in your inbox was edited:\n\n    %s\n\nNobody is shown the change. What a message says comes from "+
			"its canonical file:\n\n    %s\n\nTo change what the message says, for everybody, edit that file. To have the copy as it was "+
			"delivered, copy that file over it.", format.Printable(path), format.Printable(m.Path)),
	})
}
