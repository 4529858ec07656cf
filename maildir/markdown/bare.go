package markdown

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// bareLinks makes links of web addresses that stand in a text as they are. goldmark's own extension
// does that with regular expressions, at every space; this looks at each byte twice at most.
type bareLinks struct{}

// Trigger is where goldmark asks: at the beginning of a text, also behind emphasis, at white space
// (told by the space), and at a parenthesis.
func (bareLinks) Trigger() []byte { return []byte{' ', '('} }

// Parse makes a link of the address that begins here, or behind the byte that goldmark has stopped at.
func (bareLinks) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, at := block.PeekLine()
	before := 0
	if line[0] == '(' || line[0] == '\t' || line[0] == ' ' {
		before = 1
	}
	address := bareAddress(line[before:])
	if len(address) == 0 || pc.IsInLinkLabel() {
		return nil
	}
	if before > 0 {
		ast.MergeOrAppendTextSegment(parent, at.WithStop(at.Start+before))
	}
	begin := at.Start + before
	link := ast.NewAutoLink(ast.AutoLinkURL, ast.NewTextSegment(text.NewSegment(begin, begin+len(address))))
	if !bytes.Contains(address, []byte("://")) {
		link.Protocol = []byte("http")
	}
	block.Advance(before + len(address))
	return link
}

// bareBegins are the beginnings of an address; a host follows.
var bareBegins = []string{"https://", "http://", "www."}

// bareAddress is the web address at the beginning of a line, nil where there is none: all until a
// space or "<", but for the punctuation at its end.
func bareAddress(line []byte) []byte {
	for _, begin := range bareBegins {
		if len(line) < len(begin) || !strings.EqualFold(string(line[:len(begin)]), begin) {
			continue
		}
		end := bytes.IndexFunc(line, func(r rune) bool { return r == '<' || r == ' ' || !unicode.IsPrint(r) })
		if end < 0 {
			end = len(line)
		}
		if host, _ := utf8.DecodeRune(line[len(begin):end]); !unicode.IsLetter(host) && !unicode.IsDigit(host) {
			return nil
		}
		return trimAddress(line[:end])
	}
	return nil
}

// trimAddress leaves out the punctuation at the end of an address, and a parenthesis that was opened
// before it.
func trimAddress(address []byte) []byte {
	closed := bytes.Count(address, []byte(")")) - bytes.Count(address, []byte("("))
	for end := len(address); end > 0; end-- {
		switch last := address[end-1]; {
		case strings.IndexByte(`?!.,:;*_~'"`, last) >= 0:
		case last == ')' && closed > 0:
			closed--
		default:
			return address[:end]
		}
	}
	return nil
}
