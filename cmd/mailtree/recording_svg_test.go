package main

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The picture's dimensions in pixels, and the number of seconds for which it shows the last screen before it starts
// over.
const (
	charWidth, lineHeight, margin = 8.4, 17, 14

	lastScreen = 6
)

var escape = regexp.MustCompile("\033\\[([0-9;]*)m|\033\\([A-Z0-9]|[\x0e\x0f]")

// plainText returns the text of a screen, without escape sequences and without line ends.
func plainText(screen []string) string { return escape.ReplaceAllString(strings.Join(screen, ""), "") }

// draw returns an animated picture of the screens, as an SVG. A viewer that does not animate it shows the last screen.
func draw(times []float64, screens [][]string) []byte {
	end := times[len(times)-1] + lastScreen
	var style, lines bytes.Buffer
	var spans []string // the time spans of lines that are not always shown
	for row := range castLines {
		for from := 0; from < len(screens); {
			text, to := lineOf(screens, from, row), from+1
			for to < len(screens) && lineOf(screens, to, row) == text {
				to++
			}
			class := ""
			if from > 0 || to < len(screens) {
				begin, stop := times[from], end
				if to < len(screens) {
					stop = times[to]
				}
				span := fmt.Sprintf("%.2f%%,%.2f%%", 100*begin/end, 100*stop/end)
				i := slices.Index(spans, span)
				if i < 0 {
					i = len(spans)
					spans = append(spans, span)
					style.WriteString(keyframes(i, begin, stop, end))
				}
				class = fmt.Sprintf(" class=\"t%d\"", i)
				if to < len(screens) {
					class = fmt.Sprintf(" class=\"t%d past\"", i)
				}
			}
			lines.WriteString(svgLine(row, text, class))
			from = to
		}
	}
	var svg bytes.Buffer
	width, height := castColumns*charWidth+2*margin, float64(castLines*lineHeight+2*margin)
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f">
<title>Two agents and a person in three terminals. docs/pictures/terminal.cast has the text.</title>
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d6d9df;white-space:pre}
.b{font-weight:bold}.c2{fill:#7ee787}.c6{fill:#79c0ff}.past{visibility:hidden}
@media (prefers-reduced-motion:no-preference){
%s}
</style>
<rect width="100%%" height="100%%" rx="8" fill="#16181d"/>
%s</svg>
`, width, height, width, height, style.Bytes(), lines.Bytes())
	return svg.Bytes()
}

// keyframes returns the CSS rules for the lines of class t<i>. The animation shows these lines between the times from
// and to, and lasts until end. All times are in seconds.
func keyframes(i int, from, to, end float64) string {
	first, last := "hidden", "hidden"
	if from == 0 {
		first = "visible"
	}
	if to == end {
		last = "visible"
	}
	return fmt.Sprintf("@keyframes k%d{0%%{visibility:%s}%.2f%%{visibility:visible}%.2f%%,100%%{visibility:%s}}\n.t%d{animation:k%d %.1fs step-end infinite}\n",
		i, first, 100*from/end, 100*to/end, last, i, i, end)
}

// lineOf returns a line of a screen.
func lineOf(screens [][]string, screen, row int) string {
	if row >= len(screens[screen]) {
		return ""
	}
	return strings.TrimRight(screens[screen][row], " ")
}

// svgLine returns a line of a terminal. It supports bold text and the colors that the recording uses.
func svgLine(row int, text, class string) string {
	plain := strings.TrimRight(escape.ReplaceAllString(text, ""), " ")
	if plain == "" {
		return ""
	}
	var spans strings.Builder
	var bold, color string
	write := func(part string) {
		part = html.EscapeString(part)
		if style := strings.TrimSpace(bold + color); style != "" && part != "" {
			part = `<tspan class="` + style + `">` + part + `</tspan>`
		}
		spans.WriteString(part)
	}
	at := 0
	for _, m := range escape.FindAllStringSubmatchIndex(text, -1) {
		write(text[at:m[0]])
		at = m[1]
		if m[2] < 0 {
			continue
		}
		for code := range strings.SplitSeq(text[m[2]:m[3]], ";") {
			switch code {
			case "", "0":
				bold, color = "", ""
			case "1":
				bold = "b "
			case "39":
				color = ""
			case "32", "36":
				color = "c" + code[1:]
			}
		}
	}
	write(text[at:])
	return fmt.Sprintf("<text%s x=\"%d\" y=\"%d\" textLength=\"%.1f\">%s</text>\n", class, margin, margin+row*lineHeight+13,
		charWidth*float64(utf8.RuneCountInString(plain)), spans.String())
}
