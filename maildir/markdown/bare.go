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

// bareLinks turns bare web addresses into links. goldmark's own extension evaluates regular expressions at every space,
// whereas this parser reads each byte at most twice.
type bareLinks struct{}

// Trigger returns the bytes at which goldmark calls Parse: a space, which stands for any white space, and an opening
// parenthesis. goldmark also calls Parse at the beginning of a text.
func (bareLinks) Trigger() []byte { return []byte{' ', '('} }

// Parse returns a link if an address begins at the current position, or after the trigger byte at that position.
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

// bareBegins lists the prefixes of a bare address. A host must follow the prefix.
var bareBegins = []string{"https://", "http://", "www."}

// bareAddress returns the web address at the beginning of a line, or nil if there is none. The address ends before the
// first space, "<" or unprintable character, and does not include trailing punctuation.
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

// trimAddress removes the punctuation at the end of an address. It also removes a closing parenthesis if the matching
// parenthesis was opened before the address.
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
