// Package stdio implements the bridge between a client on standard input and output (JSON-RPC, one message per line)
// and a store's server, which it reaches over the Unix socket. The bridge knows nothing about tools and passes messages
// on unchanged.
//
//   - It supports both protocol eras and recognizes the era from the message. The server keeps no session. Each request
//     is one POST, with the revision that the message specifies (2026-07-28 and later) or that was negotiated in
//     initialize. For a client of the older era, the bridge opens subscriptions of the newer era.
//   - Piped input is handled in order. The bridge handles the next line once the previous one has been answered, or
//     after two seconds. Calls that wait for mail (wait_seconds, wait_reply_seconds) run in parallel, and the bridge
//     does not wait for their responses.
//   - When the server exits, the bridge finds or starts the next one, repeats the client's subscriptions, and notifies
//     subscribers that their resources may have changed. It repeats a request in progress if the request had not
//     reached the server, or if it only reads. It answers any other request with an error that explains the
//     situation.
//   - If a line is too long or is not a JSON-RPC message, the bridge answers with an error (-32700 or -32600, id null)
//     and continues. At the end, Run returns an error.
//   - When the input ends, the bridge answers the requests in progress and exits. A client's requests then stop waiting
//     for mail, because the client is about to exit. Piped requests, which come without a handshake, keep waiting. When
//     no process reads the output anymore, the bridge cancels all requests and exits, even if the input has not ended.
package stdio

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// Defaults and limits.
const (
	DefaultMaxLine  = 12 << 20              // maximum bytes in a line, the same as for an HTTP request
	maxUnderWay     = 256                   // maximum number of requests in progress
	defaultInOrder  = 2 * time.Second       // default for Config.inOrder
	lastWait        = time.Second           // how long a client's calls keep waiting for mail after the input has ended
	DefaultPatience = 2 * time.Second       // how long the bridge waits for another process to start the next server
	lookAgain       = 50 * time.Millisecond // interval between attempts to find a server
)

// Config configures a bridge. In, Out, Toolset and Dial are required.
type Config struct {
	In      io.Reader
	Out     io.Writer
	Toolset string
	Hello   tool.Caller // information about the caller that the bridge sends to the server
	Version string      // this program's version; clients get a notice if the server's version is older
	// Dial connects to the store's server. If no server is running and start is true, Dial may start one and wait for
	// it.
	Dial     func(ctx context.Context, start bool) (net.Conn, error)
	MaxLine  int           // maximum bytes in a line; 0 means DefaultMaxLine
	Patience time.Duration // how long to wait for another process to start the next server; 0 means DefaultPatience
	Log      *slog.Logger  // if nil, log lines are discarded

	inOrder time.Duration // how long the next line waits for the previous line's response; 0 means defaultInOrder
}

// bridge is the state of one call of Run.
type bridge struct {
	cfg    Config
	log    *slog.Logger
	client *http.Client
	hello  string

	writing sync.Mutex // held while a line is written

	linking sync.Mutex     // held while a link is created
	streams sync.WaitGroup // counts the subscriptions

	mu      sync.Mutex                           // guards the following fields
	link    *link                                // nil if there is none yet
	version string                               // revision agreed on in initialize; "" for piped input or the newer era
	watched map[string]context.CancelFunc        // subscriptions of an older-era client, by URI
	hints   map[string]bool                      // read-only tools; nil until the server has reported them
	under   map[*message]context.CancelCauseFunc // requests in progress
	bad     int                                  // number of lines that were not messages
}

// Run passes messages between the client and the server until the input ends or ctx is done. It returns an error if
// some lines were not messages, or if it cannot reach a usable server at the start.
func Run(ctx context.Context, cfg Config) error {
	if cfg.MaxLine == 0 {
		cfg.MaxLine = DefaultMaxLine
	}
	if cfg.Patience == 0 {
		cfg.Patience = DefaultPatience
	}
	if cfg.inOrder == 0 {
		cfg.inOrder = defaultInOrder
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	b := &bridge{
		cfg:     cfg,
		log:     cfg.Log,
		hello:   string(tool.Encode(cfg.Hello)),
		under:   map[*message]context.CancelCauseFunc{},
		watched: map[string]context.CancelFunc{},
	}
	b.client = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return cfg.Dial(ctx, false) },
		// A new connection for each request is cheap on a Unix socket. If the connection fails, the server has
		// certainly not received the request.
		DisableKeepAlives:  true,
		DisableCompression: true,
	}}
	if _, err := b.connect(ctx, true); err != nil {
		return err
	}
	keeping, cancel := context.WithCancel(ctx)
	kept := make(chan struct{})
	go func() { defer close(kept); b.keep(keeping) }()
	err := b.pump(ctx)
	cancel()
	<-kept
	l := b.current()
	l.end()
	<-l.down
	return err
}

// pump handles the lines until the input ends, and then waits for the responses.
func (b *bridge) pump(ctx context.Context) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	lines := make(chan line)
	go func() { // runs until the input ends, because a blocked read cannot be interrupted
		defer close(lines)
		r := bufio.NewReaderSize(b.cfg.In, 64<<10)
		for {
			l := readLine(r, b.cfg.MaxLine)
			select {
			case lines <- l:
			case <-reading.Done():
				return
			}
			if l.err != nil {
				return
			}
		}
	}()
	answering, cancel := context.WithCancel(ctx)
	defer cancel()
	var requests sync.WaitGroup
	listening, unlisten := context.WithCancel(ctx)
	defer b.streams.Wait()
	defer unlisten()
	unread := make(chan struct{})
	looked := make(chan struct{})
	defer func() { cancel(); <-looked }()
	go func() {
		defer close(looked)
		b.untilUnread(answering, func() { cancel(); close(unread) })
	}()
	for {
		select {
		case <-ctx.Done():
			requests.Wait()
			return nil
		case <-unread:
			requests.Wait()
			return b.verdict(io.EOF)
		case l := <-lines:
			b.takeLine(answering, listening, l, &requests)
			if l.err == nil {
				continue
			}
			patience := time.AfterFunc(lastWait, b.endWaits)
			requests.Wait()
			patience.Stop()
			return b.verdict(l.err)
		}
	}
}

// verdict returns the error that Run must return. The argument err is the error that ended the input.
func (b *bridge) verdict(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("cannot read the input: %w", err)
	}
	if b.bad > 0 {
		return fmt.Errorf("the input contained lines that are not JSON-RPC messages (count: %d). "+
			"Write each message on its own line, as UTF-8, in at most %d bytes", b.bad, b.cfg.MaxLine)
	}
	return nil
}

// line is one line of input. If the line did not end with a newline, err is set.
type line struct {
	text []byte
	long bool // the line was too long; text is empty
	err  error
}

func readLine(r *bufio.Reader, most int) (l line) {
	for {
		part, err := r.ReadSlice('\n')
		if len(l.text)+len(part) > most+1 {
			l.long, l.text = true, nil
		}
		if !l.long {
			l.text = append(l.text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		l.text, l.err = bytes.TrimSpace(l.text), err
		return l
	}
}

// takeLine starts to handle a line.
func (b *bridge) takeLine(ctx, listening context.Context, l line, requests *sync.WaitGroup) {
	switch {
	case l.long:
		b.refuse(nil, protocol.CodeRequest, fmt.Sprintf("the line is longer than %d bytes", b.cfg.MaxLine))
		return
	case len(l.text) == 0:
		return
	}
	m, code, err := parse(l.text)
	if err != nil {
		b.refuse(nil, code, err.Error())
		return
	}
	switch {
	case m.cancels != "":
		b.cancel(m)
	case !m.asks(): // dropped, because it concerns a session and the server keeps no session for a bridge
	case m.method == "initialize": // handled in order, because later messages depend on it
		b.exchange(ctx, m)
	case m.method == "subscriptions/listen":
		ctx, done := b.beginCall(listening, m)
		if ctx != nil {
			b.streams.Go(func() {
				defer done()
				err := b.listen(ctx, m, func(_ *envelope, data []byte) { b.answer(data) })
				if err != nil && ctx.Err() == nil {
					b.answer(m.failure(err.Error()))
				}
			})
		}
	default:
		ctx, done := b.beginCall(ctx, m)
		if ctx == nil {
			return
		}
		answered := make(chan struct{})
		requests.Go(func() {
			defer close(answered)
			defer done()
			switch {
			case m.method == "resources/subscribe" && len(m.uris) > 0:
				b.subscribe(ctx, listening, m.uris[0])
			case m.method == "resources/unsubscribe" && len(m.uris) > 0:
				b.unsubscribe(m.uris[0])
			}
			b.exchange(ctx, m)
		})
		if m.waits {
			return
		}
		select {
		case <-answered:
		case <-time.After(b.cfg.inOrder):
		}
	}
}

// cancel cancels a request in progress.
func (b *bridge) cancel(m *message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for r, end := range b.under {
		if string(r.id) == m.cancels {
			end(nil)
		}
	}
}

// errInputEnded is the cancellation cause of calls that are still waiting for mail after the input has ended.
var errInputEnded = errors.New("the input has ended, so this call stopped waiting for mail")

// endWaits stops a client's calls from waiting for mail. Piped calls keep waiting.
func (b *bridge) endWaits() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for m, end := range b.under {
		if m.waits && (m.stateless() || b.version != "") {
			end(errInputEnded)
		}
	}
}

// beginCall registers a request. If too many requests are in progress, beginCall answers the request with an error and
// returns a nil context.
func (b *bridge) beginCall(ctx context.Context, m *message) (context.Context, func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.under) >= maxUnderWay {
		b.answer(m.failure(fmt.Sprintf("%d requests are already in progress: wait until some of them have finished", maxUnderWay)))
		return nil, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	b.under[m] = cancel
	return ctx, func() {
		cancel(nil)
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.under, m)
	}
}

// refuse answers a line that is not a valid message.
func (b *bridge) refuse(id []byte, code int, text string) {
	b.mu.Lock()
	b.bad++
	b.mu.Unlock()
	b.answer(protocol.Failure(id, code, text))
}

// answer writes one message as a line.
func (b *bridge) answer(data []byte) {
	var one bytes.Buffer
	if err := compact(&one, data); err != nil {
		b.log.Warn("stdio: dropped a response that is not JSON", "error", err)
		return
	}
	one.WriteByte('\n')
	b.writing.Lock()
	defer b.writing.Unlock()
	if _, err := b.cfg.Out.Write(one.Bytes()); err != nil {
		b.log.Warn("stdio: cannot write to the output", "error", err)
	}
}
