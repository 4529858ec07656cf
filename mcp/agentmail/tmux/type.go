package tmux

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	rest     = 3 * time.Second       // how long after the last keystroke the user may still be typing
	drawTime = 5 * time.Second       // even a busy client shows typed text within this time
	showTime = time.Second           // a client submits the text within this time; otherwise Type presses Enter again
	lookTime = 50 * time.Millisecond // pause between two checks of the screen
)

// ErrBusy means that it is currently not safe to type into the pane.
var ErrBusy = errors.New("its window is in use")

// Free returns nil if no user is typing in the pane, and the prompt is empty or contains only the text from an earlier
// call of Type. Otherwise it returns ErrBusy or an error from Panes.
func (s Session) Free(ctx context.Context, pane, text string) error {
	out, err := s.run(ctx, "list-clients", "-F", "#{client_activity} #{pane_id}")
	if err != nil {
		return err
	}
	for l := range strings.Lines(out) {
		at, looksAt, _ := strings.Cut(strings.TrimSpace(l), " ")
		if key, err := strconv.ParseInt(at, 10, 64); err == nil && looksAt == pane && time.Since(time.Unix(key, 0)) < rest {
			return fmt.Errorf("%w: somebody pressed a key there just now", ErrBusy)
		}
	}
	screen, err := s.screen(ctx, pane)
	if err == nil && screen.Activity != Waiting && !screen.leftBehind(text) {
		err = fmt.Errorf("%w: it %s", ErrBusy, screen.Activity)
	}
	return err
}

// screen reads the pane's screen. Its errors are those of Panes.
func (s Session) screen(ctx context.Context, pane string) (Screen, error) {
	if !paneID().MatchString(pane) {
		return Screen{}, errors.New("there is no such tmux pane")
	}
	out, err := s.run(ctx, "display-message", "-p", "-t", pane, "#{cursor_y}", ";", "capture-pane", "-e", "-p", "-t", pane)
	if err != nil {
		return Screen{}, err
	}
	first, captured, _ := strings.Cut(out, "\n")
	cursor, err := strconv.Atoi(first)
	if err != nil {
		return Screen{}, fmt.Errorf("tmux did not report the cursor position: %w", err)
	}
	return ReadScreen(captured, cursor), nil
}

// Type types the text into the pane unchanged, pauses, and presses Enter. It then checks that the client has submitted
// the text, and presses Enter once more if necessary. If an earlier call left the text in the prompt, Type does not
// type it again. Once Type has begun to type, it ignores the cancellation of ctx, because half a notice in a prompt is
// worse than a late return. Type returns ErrBusy or the same errors as Panes. Even if it returns an error, the text may
// be in the prompt.
//
// Programs treat keystrokes that arrive together as a paste, and an Enter among them as a line break
// (https://github.com/dustinkirkland/byobu/issues/115). Type therefore pauses, and does not press Enter until the
// screen shows the text.
func (s Session) Type(ctx context.Context, pane, text string, pause time.Duration) error {
	if !paneID().MatchString(pane) {
		return errors.New("there is no such tmux pane")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	screen, err := s.screen(ctx, pane)
	if err != nil {
		return err
	}
	if !screen.leftBehind(text) {
		if _, err := s.run(ctx, "send-keys", "-t", pane, "-l", "--", text); err != nil {
			return err
		}
		time.Sleep(pause)
	}
	screen, err = s.watch(ctx, pane, drawTime, func(now Screen) bool { return now.Activity != Waiting })
	switch {
	case err != nil:
		return err
	case screen.Activity == Waiting:
		return fmt.Errorf("%w: the typed notice did not appear, so it was not submitted", ErrBusy)
	case screen.Activity == Asking || screen.Activity == Typing && !screen.holds(text):
		return fmt.Errorf("%w: the window %s, so the typed notice was not submitted", ErrBusy, screen.Activity)
	}
	for range 2 {
		if _, err = s.run(ctx, "send-keys", "-t", pane, "Enter"); err != nil {
			return err
		}
		if screen, err = s.watch(ctx, pane, showTime, func(now Screen) bool { return !now.holds(text) }); err != nil || !screen.holds(text) {
			return err
		}
	}
	return fmt.Errorf("%w: pressing Enter did not submit the notice, which is still in the prompt", ErrBusy)
}

// watch reads the screen repeatedly until wanted returns true or most has elapsed. It returns the last screen.
func (s Session) watch(ctx context.Context, pane string, most time.Duration, wanted func(Screen) bool) (Screen, error) {
	for end := time.Now().Add(most); ; time.Sleep(lookTime) {
		screen, err := s.screen(ctx, pane)
		if err != nil || wanted(screen) || time.Now().After(end) {
			return screen, err
		}
	}
}

// holds reports whether the prompt contains the text and nothing else. It also returns true if the screen shows only
// part of the text because the text is wrapped. If the program's prompt is unknown, other characters may precede the
// text.
func (s Screen) holds(text string) bool {
	text, typed := squeeze(text), squeeze(s.Typed)
	return s.Activity == Typing && (strings.HasSuffix(typed, text) || strings.Contains(text, typed))
}

// leftBehind reports whether the prompt contains only the text from an earlier call of Type. If the text is wrapped,
// the screen shows only its first line.
func (s Screen) leftBehind(text string) bool {
	text, typed := squeeze(text), squeeze(s.Typed)
	return s.Activity == Typing && text != "" && (typed == text || len(typed) > len(text)/3 && strings.HasPrefix(text, typed))
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }
