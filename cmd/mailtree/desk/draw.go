package desk

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"mailtree/cmd/mailtree/cli"
)

// bar separates the list from the thread.
const bar = " | "

// narrow is the width of the list in a terminal of 80 columns.
const narrow = 38

// keyHelp is the help text that lists the keys.
const keyHelp = `j k  move to the next or previous row; if a thread is open, also open the row.
o Enter  open the row.
Space b  scroll the thread.
y n  answer yes or no.
h  later: hide the thread for two hours.
r R  reply to everyone, or only to the sender.
e  done: mark as read (in an open thread, only the messages shown so far).
z  cancel an unsent answer, or undo your last action.
/  search.
u Esc  return to the list.
q  quit.`

// draw returns the lines of the screen, and records which messages are on the screen.
func (d *Desk) draw() []string {
	width := max(20, d.screen.Width)
	foot := d.drawFoot(width)
	height := max(4, d.screen.Height-2-len(foot))
	left := min(max(narrow, width*2/5), 64, width/2)
	list, pane := d.drawList(left, height), d.drawPane(width-left-len(bar), height)
	lines := []string{d.screen.Bold(cli.Ends(" "+d.list.Title, d.list.Me, width))}
	for i := range list {
		lines = append(lines, list[i]+d.screen.Faint(bar)+pane[i])
	}
	keys := "j k move  o open"
	if _, why := d.answerable(); why == "" {
		keys = "y yes  n no  h later"
	} else if d.open != nil {
		keys = "j k move  Space scroll"
	}
	keys += "  r reply  e done  z undo  / search  ? keys  q quit"
	if d.query != nil {
		keys = "Enter search  Esc cancel"
	}
	keys = cli.Cell(" "+keys, width)
	return append(append(lines, foot...), d.screen.Faint(keys))
}

// drawFoot returns the lines above the line of keys. They show the result of the last action, or what the agents are
// doing.
func (d *Desk) drawFoot(width int) []string {
	text := cli.Fit(d.list.Agents, width-1)
	switch {
	case d.query != nil:
		text = "Search: " + *d.query + "_"
	case d.pending != nil:
		text = strings.TrimSpace(fmt.Sprintf("Sending %s to %s: z cancels  %s", answers[d.pending.key], d.pending.asker, d.notice))
	case d.notice != "":
		text = cli.Text(d.notice)
	}
	lines := wrapped(text, " ", width)
	return lines[:min(len(lines), max(1, d.screen.Height/2))]
}

// wrapped breaks text into lines of the given width. Each line begins with the margin.
func wrapped(text, margin string, width int) (lines []string) {
	for line := range strings.Lines(cli.Fold(text, width-len(margin)) + "\n") {
		for _, part := range cli.Wrap(strings.TrimSuffix(line, "\n"), width-len(margin)) {
			lines = append(lines, cli.Cell(margin+part, width))
		}
	}
	return lines
}

// drawList returns the lines of the list, scrolled so that the row with the focus is visible.
func (d *Desk) drawList(width, height int) []string {
	var lines []string
	at, n := 0, 0
	for _, g := range d.shown().Groups {
		if len(g.Rows) > 0 {
			lines = append(lines, d.screen.Bold(cli.Ends(" "+g.Title, fmt.Sprint(g.Total), width)))
		}
		for i := range g.Rows {
			if n == d.focus {
				at = len(lines)
			}
			lines = append(lines, d.drawRow(&g.Rows[i], n == d.focus, width))
			n++
		}
	}
	if n == 0 {
		lines = append(lines, cli.Cell(" Nothing is waiting for you.", width))
	}
	for _, q := range d.shown().Quiet {
		lines = append(lines, d.screen.Faint(cli.Cell(" "+q, width)))
	}
	return fill(lines[max(0, min(at-height/2, len(lines)-height)):], width, height)
}

func (d *Desk) drawRow(r *Row, focused bool, width int) string {
	who, about := 11, r.About
	if width > narrow {
		who = 17
		if r.Mark != "" {
			about = r.Mark + ": " + about
		}
	}
	line := cli.Ends(cli.Cell(r.Who, who)+" "+about, fmt.Sprintf("%3s", d.screen.Ago(r.At.Format(time.RFC3339))), width-1)
	if focused {
		return d.screen.Bold(">" + line)
	}
	return " " + line
}

// fill returns exactly height lines. It drops lines from the end or adds empty lines.
func fill(lines []string, width, height int) []string {
	lines = lines[:min(len(lines), height)]
	for len(lines) < height {
		lines = append(lines, cli.Cell("", width))
	}
	return lines
}

// drawPane returns the lines of the open thread. A thread that has just been opened is scrolled to its first waiting
// message. If a message asks for yes or no, the thread is scrolled to that message instead.
func (d *Desk) drawPane(width, height int) []string {
	o := d.open
	if o == nil {
		return fill(nil, width, height)
	}
	lines, ends := d.drawThread(width)
	if o.page = height - 1; len(lines) > o.page {
		o.page-- // make room for the line that counts the hidden lines
	}
	begins := []int{0}
	for i, m := range o.messages {
		begins = append(begins, ends[i]+1)
		if o.top < 0 && (m.ID == o.row.Message || slices.Contains(o.row.IDs, m.ID) && !o.row.Decides || i == len(ends)-1) {
			o.top = begins[i]
		}
	}
	o.top = max(0, min(o.top, len(lines)-o.page))
	bottom := min(o.top+o.page, len(lines))
	if len(lines)-bottom == 1 { // show the last line instead of the count
		bottom++
	}
	o.whole, o.long = map[string]bool{}, map[string]bool{}
	for i, m := range o.messages {
		o.long[m.ID] = m.Truncated || ends[i]-begins[i] > o.page
		if ends[i] > o.top && ends[i] <= bottom && !m.Truncated {
			o.seen[m.ID], o.whole[m.ID] = true, begins[i] >= o.top
		}
	}
	shown := append([]string{d.screen.Bold(cli.Ends(o.row.About, o.row.Mark, width))}, lines[o.top:bottom]...)
	if more := len(lines) - bottom; more > 0 {
		shown = append(shown, d.screen.Faint(cli.Cell(fmt.Sprintf("%d more lines", more), width)))
	}
	return fill(shown, width, height)
}

// drawnText is the text of a message, broken into lines of the given width.
type drawnText struct {
	body, below string
	width       int
	lines       []string
}

// drawText returns the lines of a message's text. It caches them, because breaking a long text into lines is slow.
func (o *opened) drawText(m *Message, screen *cli.Screen) []string {
	t := o.drawn[m.ID]
	body := *cmp.Or(m.Body, new(string))
	if t.lines == nil || t.body != body || t.below != m.Below || t.width != screen.Width {
		shown := strings.ReplaceAll(screen.Markdown(body, 0), "\t", "    ")
		if m.Truncated {
			shown += "To read the rest: mailtree read " + screen.ShortID(m.ID) + "\n"
		}
		t = drawnText{body, m.Below, screen.Width, wrapped(strings.TrimSuffix(shown+m.Below, "\n"), "", screen.Width)}
		o.drawn[m.ID] = t
	}
	return t.lines
}

// drawThread returns the lines of the open thread and, for each message, the index of the line after the message's last
// line. An empty line separates messages.
func (d *Desk) drawThread(width int) (lines []string, ends []int) {
	pane := *d.screen
	pane.Width = width
	for i := range d.open.messages {
		m := &d.open.messages[i]
		if i > 0 {
			lines = append(lines, cli.Cell("", width))
		}
		lines = append(lines, d.screen.Bold(cli.Ends(m.Head, d.screen.Ago(m.Created), width)))
		lines = append(lines, d.open.drawText(m, &pane)...)
		ends = append(ends, len(lines))
	}
	return lines, ends
}
