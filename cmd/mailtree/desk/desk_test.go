package desk

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/mcp/mail"
)

var update = flag.Bool("update", false, "write what the screen shows to fixtures/desk")

// world is a Source with a mailbox in memory. Do removes the messages that it handles from the list. It refuses the e
// key for a thread that asks the user for an answer.
type world struct {
	list    List
	threads map[string][]Message
	calls   []string // the calls to Do and Undo
	fails   error    // the error that Do returns
	due     chan time.Time
	now     time.Time
}

func (w *world) List(context.Context) (*List, error) {
	list := w.list
	list.Groups = nil
	for _, g := range w.list.Groups {
		g.Rows = slices.Clone(g.Rows)
		list.Groups = append(list.Groups, g)
	}
	return &list, nil
}

func (w *world) Thread(_ context.Context, r Row) ([]Message, error) {
	return w.threads[r.Thread], nil
}

func (w *world) Search(_ context.Context, _, query string) (rows []Row, err error) {
	if query == "from:" {
		return nil, errors.New("the query is not valid")
	}
	for _, r := range w.list.rows() {
		if strings.Contains(r.About, query) {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

func (w *world) Do(_ context.Context, key string, r Row, ids []string) (Done, error) {
	w.calls = append(w.calls, strings.TrimSpace(key+" "+r.Thread+" "+strings.Join(ids, ",")))
	if key == "e" && r.Why != "" {
		return Done{}, errors.New("the thread asks you for an answer, so nothing was changed")
	}
	for _, m := range w.threads[r.Thread] {
		if m.ID == r.Message && (key == "y" || key == "n") && r.Shown != maildir.TextSum(m.Subject, *m.Body) {
			return Done{}, errors.New("the message has changed")
		}
	}
	if w.fails != nil {
		return Done{}, w.fails
	}
	for i := range w.list.Groups {
		g := &w.list.Groups[i]
		for j := range g.Rows {
			g.Rows[j].IDs = slices.DeleteFunc(slices.Clone(g.Rows[j].IDs), func(id string) bool { return slices.Contains(ids, id) })
		}
		g.Rows = slices.DeleteFunc(g.Rows, func(o Row) bool { return o.Thread == r.Thread && (key != "e" || len(o.IDs) == 0) })
	}
	return Done{Text: "Did " + key + " to " + r.Thread, IDs: []string{r.Thread}}, nil
}

func (w *world) Undo(_ context.Context, d Done) error {
	w.calls = append(w.calls, "undo "+d.Text)
	return nil
}

func (w *world) Watch(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return nil
}

// row returns the row of a thread that has waiting messages.
func (w *world) row(thread, who, about, why string, ago time.Duration, ids ...string) Row {
	r := Row{Who: who, About: about}
	r.WaitingThread = maildir.WaitingThread{Thread: thread, Message: ids[len(ids)-1], Why: why, Decides: why != "", At: w.now.Add(-ago), IDs: ids}
	return r
}

func (w *world) message(id, head, body string, ago time.Duration) Message {
	m := Message{Message: mail.Message{ID: id, Created: w.now.Add(-ago).Format(time.RFC3339)}, Head: head}
	m.From, _, _ = strings.Cut(head, " ")
	m.Body = &body
	return m
}

// newWorld returns a world that contains the mail shown in the section "The screen" of docs/reference/commands.md.
func newWorld() *world {
	w := &world{due: make(chan time.Time), now: time.Date(2026, 11, 28, 19, 0, 0, 0, time.UTC)}
	stripe := w.row("stripe", "AmberFox", "May I rotate the Stripe key now?", "needs acknowledgement", time.Hour, "stripe-1")
	stripe.Mark = "urgent"
	prompt := Row{Mark: "asks", Who: "BlueLake", About: "permission prompt in claude: tmux switch-client -t %3"}
	prompt.At = w.now
	var lines []string
	for i := range 40 {
		lines = append(lines, fmt.Sprintf("Line %d of the list.  ", i+1))
	}
	w.list = List{
		Title: "All 8  webshop 6  mobile 2",
		Me:    "robin",
		Groups: []Group{
			{Title: "Blocked on you", Total: 2, Rows: []Row{prompt, stripe}},
			{Title: "Questions", Total: 2, Rows: []Row{
				w.row("call", "IronBridge", "On-call tonight?", "needs an answer", time.Hour, "call-1"),
				w.row("long", "SilverPine", "Which of these?", "needs an answer", 2*time.Hour, "long-1"),
			}},
			{Title: "New", Total: 41, Rows: []Row{
				w.row("menu", "BlueLake", "Screens of the account menu 会計メニューの画面、全部で六つ", "", 7*time.Minute, "menu-1", "menu-2"),
				w.row("price", "QuietHarbor", "Prices in Swiss francs: 1'234.50 or 1,234.50", "", 100*time.Hour, "price-1"),
			}},
		},
		Quiet:  []string{"Can't wake VioletBrook (3 unread, 26h) +3: no session"},
		Agents: "BlueLake asks  GreenCastle working orders.py 4m  AmberFox held",
	}
	w.threads = map[string][]Message{
		"stripe": {w.message("stripe-1", "AmberFox to robin", "The old live key is in the log of staging since 17:41.\n\n"+
			"1. I create a new restricted key.\n2. I deploy it to staging and production.\n\n"+
			"```\nstripe keys roll --live --expire-now --restricted --all-accounts\n```\n\nMay I?", time.Hour)},
		"call": {
			w.message("call-0", "robin to IronBridge", "Thanks for yesterday.", 20*time.Hour),
			w.message("call-1", "IronBridge to robin", "Can you take it?", time.Hour),
		},
		"long":  {w.message("long-1", "SilverPine to robin", strings.Join(lines, "\n"), 2*time.Hour)},
		"menu":  {w.message("menu-1", "BlueLake to robin", "The first three.", time.Hour), w.message("menu-2", "BlueLake to robin", strings.Join(lines, "\n"), 7*time.Minute)},
		"price": {w.message("price-1", "QuietHarbor to robin (not verified)", "See the file.", 100*time.Hour)},
	}
	w.threads["price"][0].Below = "file: attachments/2a/2a6f.png\n"
	return w
}

// open returns a screen of 80 columns and 24 lines that shows the list.
func (w *world) open() *Desk {
	d := New(w, func(time.Duration) <-chan time.Time { return w.due })
	d.screen = &cli.Screen{Width: 80, Height: 24, Now: func() time.Time { return w.now }}
	d.refresh(context.Background(), false)
	d.draw()
	return d
}

// play presses keys as slowly as a user does. keys is separated by spaces. Three of its words are not keys: "wait" lets
// one second pass, "due" lets enough time pass that an answer can no longer be canceled, and "live" simulates a change
// by others.
func (w *world) play(t *testing.T, d *Desk, keys string) {
	t.Helper()
	for _, key := range strings.Fields(keys) {
		w.now = w.now.Add(200 * time.Millisecond)
		switch key {
		case "wait":
			w.now = w.now.Add(time.Second)
		case "due":
			if d.pending == nil || d.pending.due != (<-chan time.Time)(w.due) {
				t.Fatalf("nothing is pending")
			}
			d.flush(t.Context())
		case "live":
			d.refresh(t.Context(), true)
		case "space":
			d.press(t.Context(), " ")
		default:
			d.press(t.Context(), key)
		}
		d.draw()
	}
}

// screens lists sequences of keys. TestDraw checks the screen after each sequence.
var screens = []string{
	"", "j o", "j j o", "j j o y", "j o y z", "j o e", "j j j o", "j j j o space", "j j j o y", "j j j j o", "j j j j j o", "o",
	"/ S t r", "/ S t r enter", "?",
}

// TestDraw checks that the screen, with 80 columns and 24 lines, shows the text in fixtures/desk/80x24.txt.
func TestDraw(t *testing.T) {
	const file = "../../../fixtures/desk/80x24.txt"
	var b strings.Builder
	b.WriteString("What `mailtree desk` shows after some keys. TestDraw -update writes it.\n")
	for _, keys := range screens {
		w := newWorld()
		d := w.open()
		w.play(t, d, keys)
		lines := d.draw()
		if len(lines) != 24 {
			t.Errorf("%q: %d lines", keys, len(lines))
		}
		fmt.Fprintf(&b, "\n-- keys: %s --\n", keys)
		for _, line := range lines {
			if strings.Count(line, "") > 81 {
				t.Errorf("%q: a line of more than 80 columns: %s", keys, line)
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the screens differ from %s (see -update):\n%s", file, &b)
	}
}

// TestKeys checks what keys do to the mail, and which notice the screen then shows.
func TestKeys(t *testing.T) {
	for _, tt := range []struct {
		name, keys string
		calls      string // separated by "; "
		notice     string // a part of the notice
	}{
		{"an answer is sent after a while", "j o y due", "y stripe", "Did y to stripe (z: undo)"},
		{"an answer is not sent at once", "j o y", "", ""},
		{"an answer can be canceled", "j o y z", "", "Yes was not sent."},
		{"canceling goes back to the message", "j o y z n due", "n stripe", "Did n"},
		{"the next answer sends it", "j o y wait n", "y stripe", ""},
		{"two answers", "j o y wait n due", "y stripe; n call", "Did n to call"},
		{"another answer to the same message replaces it", "j o y k wait n due", "n stripe", "Did n"},
		{"later sends it", "j o y wait h", "y stripe; h call", "Did h"},
		{"a reply sends it", "j o y wait r", "y stripe; r call", "Did r"},
		{"other keys do not send it", "j o y j k ? u", "", ""},
		{"a message that appeared cannot be answered at once", "j o y y n h e", "", "has just changed"},
		{"a message that the user opened can", "j o y k j n", "y stripe", ""},
		{"without an open thread, nothing can be answered", "j y n h", "", "Open the message first"},
		{"a message that does not ask", "j j j j j o y n h", "", "ask you a question"},
		{"a message that does not fit on the screen", "j j j o y", "", "longer than the screen"},
		{"a message that is never fully on the screen", "j j j o space space space y", "", "longer than the screen"},
		{"a prompt", "o y", "", "ask you a question"},
		{"done is refused for a question", "j e o e", "e stripe stripe-1; e stripe stripe-1", "so nothing was changed"},
		{"done in the list", "j j j j e e e", "e menu menu-1,menu-2; e price price-1; e long long-1", "so nothing was changed"},
		{"done with what was on the screen", "j j j j o e e", "e menu menu-1", "Nothing was marked as read: no unread message has been shown to its end"},
		{"done with what was shown to its end", "j j j j o e space space b e", "e menu menu-1; e menu menu-2", "Did e"},
		{"after done, the row that took its place", "j j j j o space space e j e", "e menu menu-1,menu-2; e price price-1", "Did e"},
		{"later, and the next thread", "j o h", "h stripe", "Did h to stripe"},
		{"later, and no answer at once", "j o h y", "h stripe", "has just changed"},
		{"replies", "j r j R", "r stripe; R long", "Did R"},
		{"no reply to a prompt", "r", "", ""},
		{"undo, newest first", "j o h z z z", "h stripe; undo Did h to stripe", "There is nothing to undo"},
		{"the last row stays", "j j j j j j j j j o e", "e price price-1", ""},
		{"the first row stays", "k k j o h", "h stripe", ""},
		{"a change of something else does not stop done", "j j j j live e", "e menu menu-1,menu-2", ""},
		{"search", "/ p r i c e", "", ""},
		{"a search without a result", "/ p r i c e enter", "", "No message matches price."},
		{"a search that is refused", "/ f r o m : enter", "", "the query is not valid"},
		{"a found question can be answered", "/ S t r enter o y due", "y stripe", "Did y"},
		{"keys in a search are text", "/ y n e esc", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			d := w.open()
			w.play(t, d, tt.keys)
			if got := strings.Join(w.calls, "; "); got != tt.calls {
				t.Errorf("calls: %s, want %s", got, tt.calls)
			}
			if !strings.Contains(d.notice, tt.notice) {
				t.Errorf("the screen says %q, want %q", d.notice, tt.notice)
			}
		})
	}
}

// TestHeldKey checks that a key that is held down acts only once.
func TestHeldKey(t *testing.T) {
	w := newWorld()
	d := w.open()
	w.play(t, d, "j j j j")
	for range 5 {
		w.now = w.now.Add(30 * time.Millisecond)
		d.press(t.Context(), "e")
		d.draw()
	}
	if len(w.calls) != 1 {
		t.Errorf("calls: %v", w.calls)
	}
}

// TestLive checks that a key does not act on mail that arrives just before the user presses the key.
func TestLive(t *testing.T) {
	w := newWorld()
	d := w.open()
	w.play(t, d, "j j j j")
	w.list.Groups[2].Rows[0].IDs = []string{"menu-1", "menu-2", "menu-3"}
	w.play(t, d, "live e")
	if len(w.calls) > 0 {
		t.Errorf("calls: %v", w.calls)
	}
	w.play(t, d, "wait e")
	if want := []string{"e menu menu-1,menu-2,menu-3"}; !slices.Equal(w.calls, want) {
		t.Errorf("calls: %v", w.calls)
	}

	// New mail arrives in an open thread.
	w = newWorld()
	d = w.open()
	w.play(t, d, "j o")
	w.threads["stripe"] = append(w.threads["stripe"], w.message("stripe-2", "AmberFox to robin", "Or not?", 0))
	w.play(t, d, "live y")
	if d.pending != nil {
		t.Error("a message that has just appeared was answered")
	}

	// The row with the focus disappears.
	w = newWorld()
	d = w.open()
	w.play(t, d, "j j j j")
	w.list.Groups[2].Rows = w.list.Groups[2].Rows[1:]
	w.play(t, d, "live e")
	if len(w.calls) > 0 {
		t.Errorf("calls: %v", w.calls)
	}
}

// TestSettled checks that a pending answer is not sent if the question has meanwhile been answered elsewhere.
func TestSettled(t *testing.T) {
	w := newWorld()
	d := w.open()
	w.play(t, d, "j o y live")
	if d.pending == nil {
		t.Fatal("a change of something else canceled the answer")
	}
	w.list.Groups[0].Rows = w.list.Groups[0].Rows[:1]
	w.play(t, d, "live")
	if want := "Yes to AmberFox was not sent, because the question is no longer open."; d.notice != want {
		t.Errorf("the screen says %q", d.notice)
	}
	w.play(t, d, "wait n due")
	if want := []string{"n call"}; !slices.Equal(w.calls, want) {
		t.Errorf("calls: %v", w.calls)
	}
}

// TestAmended checks that an answer is not sent if the author has changed the message after the user saw it.
func TestAmended(t *testing.T) {
	w := newWorld()
	d := w.open()
	w.play(t, d, "j o y")
	other := "May I delete all of production?"
	w.threads["stripe"][0].Body = &other
	w.play(t, d, "due")
	if want := "Yes to AmberFox failed: the message has changed"; d.notice != want {
		t.Errorf("the screen says %q", d.notice)
	}
}

// TestAsker checks that the screen names the author of the question, even if others have written in the thread since.
func TestAsker(t *testing.T) {
	w := newWorld()
	w.list.Groups[0].Rows[1].Who = "BlueLake +1"
	d := w.open()
	w.play(t, d, "j o y")
	if screen := strings.Join(d.draw(), "\n"); !strings.Contains(screen, "Sending Yes to AmberFox: z cancels") {
		t.Errorf("the screen says\n%s", screen)
	}
}

// TestFailedAnswer checks that the screen says which answer could not be sent.
func TestFailedAnswer(t *testing.T) {
	w := newWorld()
	d := w.open()
	w.fails = errors.New("the server is gone")
	w.play(t, d, "j o y due")
	if d.notice != "Yes to AmberFox failed: the server is gone" || len(d.done) > 0 {
		t.Errorf("the screen says %q", d.notice)
	}
}
