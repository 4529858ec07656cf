package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func testScreen(width int) (*Screen, *bytes.Buffer) {
	out := &bytes.Buffer{}
	s := NewScreen(out, func(string) string { return "" })
	s.Width, s.Now = width, func() time.Time { return time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC) }
	return s, out
}

// TestTable checks that columns are aligned and that empty columns are left out. On a terminal, the widest columns must
// be cut, and widths must be measured in terminal columns rather than letters.
func TestTable(t *testing.T) {
	rows := []Row{
		{Cells: []string{"a", "", "日本", "the quick brown fox jumps over"}},
		{Cells: []string{"bbb", "", "x", "日本語日本語日本語日本語日本語"}},
	}
	for _, tt := range []struct {
		name  string
		width int
		want  string
	}{
		{"no terminal", 0, "a    日本  the quick brown fox jumps over\nbbb  x     日本語日本語日本語日本語日本語\n"},
		{"narrow", 30, "a    日本  the quick brown fo…\nbbb  x     日本語日本語日本語…\n"},
		{"too narrow", 5, "a    日…  th…\nbbb  x    日…\n"},
	} {
		s, out := testScreen(tt.width)
		s.Table(rows)
		if out.String() != tt.want {
			t.Errorf("%s:\n%swant\n%s", tt.name, out, tt.want)
		}
	}
}

// TestTableOfNames checks that names in the first column are cut only after the other columns have reached their
// minimum width.
func TestTableOfNames(t *testing.T) {
	rows := []Row{{Cells: []string{"GreenCastle", "db/0042.sql", "migrations"}}}
	for width, want := range map[int]string{
		30: "GreenCastle  db/0042…  migrat…\n",
		21: "GreenCastle  db…  mi…\n",
		19: "GreenCas…  db…  mi…\n",
	} {
		s, out := testScreen(width)
		s.Table(rows)
		if out.String() != want {
			t.Errorf("%d:\n%swant\n%s", width, out, want)
		}
	}
}

// TestLay checks that consecutive lines with tabs form a table. Lines that begin with a tab are facts, whose values
// must not be cut.
func TestLay(t *testing.T) {
	s, out := testScreen(14)
	s.colour = true
	s.Lay("head\na\tlonger than all\n" + Strong + "bbb\tc\n\n\tname\tlong value\n\tx\ty\ntail")
	want := "head\na    longer t…\n\x1b[1mbbb  c\x1b[0m\n\nname  long\n      value\nx     y\ntail\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// TestTableHead checks that headings are shown only for columns that are not empty, and only if there are other rows.
func TestTableHead(t *testing.T) {
	s, out := testScreen(0)
	s.Lay(Head + "AGENT\tSTATE\tTASK\nAnn\t\tthe API\n\n" + Head + "CLAIM\tAGENT\n\nno claims\n")
	if want := "AGENT  TASK\nAnn    the API\n\n\nno claims\n"; out.String() != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// TestTableOfWideCells checks that a wide cell before the last cell does not push the last cell off the terminal.
func TestTableOfWideCells(t *testing.T) {
	s, out := testScreen(40)
	s.colour = true
	s.Table([]Row{
		{Title: "Two", Cells: []string{s.Warn("urgent"), strings.Repeat("name, ", 20), strings.Repeat("word ", 20)}},
		{Cells: []string{"", "x", "y"}, Strong: true},
	})
	want := "\x1b[1mTwo\x1b[0m\n\x1b[31murgent\x1b[0m  name, name, na…  word word word…\n" +
		"\x1b[1m        x                y\x1b[0m\n"
	if out.String() != want {
		t.Errorf("got\n%q want\n%q", out, want)
	}
}

// TestText checks that text written by others cannot control a terminal.
func TestText(t *testing.T) {
	hostile := "a\x1b[2Jb\rc\u202ed\xffe\u0085\n\tf"
	if got, want := Text(hostile), "a\uFFFD[2Jb\uFFFDc\uFFFDd\uFFFDe\uFFFD\n\tf"; got != want {
		t.Errorf("Text: %q, want %q", got, want)
	}
	if got := Line(hostile); strings.ContainsAny(got, "\x1b\r\n\u202e") {
		t.Errorf("Line: %q", got)
	}
}

// TestAgo checks the text for times in the past and in the future.
func TestAgo(t *testing.T) {
	s, _ := testScreen(0)
	for stamp, want := range map[string]string{
		"":                            "",
		"2026-01-31T11:59:30Z":        "now",
		"2026-01-31T12:00:30Z":        "now",
		"2026-01-31T11:01:00.123456Z": "58m",
		"2026-01-31T02:00:00Z":        "10h",
		"2026-01-28T12:00:00Z":        "3d",
		"2026-01-31T13:00:00Z":        "in 1h",
		"2026-01-10T12:00:00Z":        "10 Jan",
		"2025-07-10T12:00:00Z":        "2025-07-10",
	} {
		if got := s.Ago(stamp); got != want {
			t.Errorf("Ago(%s): %q, want %q", stamp, got, want)
		}
	}
	if got := s.In("2026-01-31T12:59:58Z"); got != "1h" {
		t.Errorf("In: %q", got)
	}
	if got := s.In("2026-01-31T13:30:00Z"); got != "1h 30m" {
		t.Errorf("In: %q", got)
	}
}

// TestMoment checks that each form in which users can write times is converted to the form that tools accept.
func TestMoment(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.Local)
	for given, want := range map[string]time.Time{
		"10m":                  now.Add(-10 * time.Minute),
		"3d":                   now.Add(-72 * time.Hour),
		"today":                time.Date(2026, 1, 31, 0, 0, 0, 0, time.Local),
		"yesterday":            time.Date(2026, 1, 30, 0, 0, 0, 0, time.Local),
		"2025-12-24":           time.Date(2025, 12, 24, 0, 0, 0, 0, time.Local),
		"2026-01-31T09:00:00Z": time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC),
		"2025-12-24 18:30":     time.Date(2025, 12, 24, 18, 30, 0, 0, time.Local),
	} {
		if got, ok := Moment(given, now); !ok || got != want.UTC().Format(time.RFC3339) {
			t.Errorf("%s: %s, %v, want %s", given, got, ok, want)
		}
	}
	for _, given := range []string{"", "3a51c0f7", "noon", "9999999999m"} {
		if got, ok := Moment(given, now); ok {
			t.Errorf("%q is treated as %s", given, got)
		}
	}
}

// TestTableOfEmoji checks that the width of a cell is its width on a terminal, even if several code points form one
// visible character. Examples are a symbol with a variation selector, a flag, and several people joined.
func TestTableOfEmoji(t *testing.T) {
	s, out := testScreen(0)
	s.Table([]Row{
		{Cells: []string{"🚀", "x"}}, {Cells: []string{"⚡", "x"}}, {Cells: []string{"✅", "x"}}, {Cells: []string{"👩\u200d💻", "x"}},
		{Cells: []string{"🇫🇷", "x"}}, {Cells: []string{"❤\ufe0f", "x"}}, {Cells: []string{"e\u0301", "x"}}, {Cells: []string{"日", "x"}},
	})
	want := "🚀  x\n⚡  x\n✅  x\n👩\u200d💻  x\n🇫🇷  x\n❤\ufe0f  x\ne\u0301   x\n日  x\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	for text, want := range map[string]string{"ab👩\u200d💻c": "ab👩\u200d💻c", "ab👩\u200d💻cd": "ab👩\u200d💻…", "abc👩\u200d💻d": "abc…", "a🇫🇷🇫🇷🇫🇷": "a🇫🇷…"} {
		if got := Fit(text, 5); got != want {
			t.Errorf("%q is cut to %q, want %q", text, got, want)
		}
	}
}

// TestJSON checks that JSON printed on a terminal contains no character that controls the terminal, and still means the
// same.
func TestJSON(t *testing.T) {
	t.Parallel()
	const answer = `{"subject":"a\u001b[31m` + "\u009b31m\u202e\x7fÄ\U0001f600" + `"}`
	for width, want := range map[int]string{
		0:  answer + "\n",
		80: "{\n  \"subject\": \"a\\u001b[31m\\u009b31m\\u202e\\u007fÄ\U0001f600\"\n}\n",
	} {
		var b strings.Builder
		if err := (&Screen{Out: &b, Width: width}).JSON([]byte(answer)); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("width %d: %q, want %q", width, b.String(), want)
		}
	}
}

// TestPagedLeft checks that if the user quits the pager early, the command stops printing and returns no error. Any
// other error must be returned.
func TestPagedLeft(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "terminal"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	failed := errors.New("no mail")
	for _, tt := range []struct {
		pager string
		print func(*Screen) error
		want  error
	}{
		{"head -n 1", func(s *Screen) error {
			for {
				if _, err := io.WriteString(s.Out, "a line\n"); err != nil {
					return err
				}
			}
		}, nil},
		{"sed s/^/paged:/", func(*Screen) error { return failed }, failed},
	} {
		s := NewScreen(out, func(name string) string { return map[string]string{"PAGER": tt.pager}[name] })
		s.tty = out
		if err := s.Paged(t.Context(), tt.print); !errors.Is(err, tt.want) {
			t.Errorf("PAGER=%s: %v, want %v", tt.pager, err, tt.want)
		}
	}
	if text, err := os.ReadFile(out.Name()); string(text) != "a line\n" {
		t.Errorf("the terminal shows %q, %v", text, err)
	}
}
