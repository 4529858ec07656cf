package format

import (
	"math"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/lazy"
)

var (
	spanPattern = lazy.Regexp(strings.ReplaceAll(`^(?:Nw)?(?:Nd)?(?:Nh)?(?:Nm)?(?:Ns)?(?:Nms)?$`, "N", `[0-9]{1,9}(?:\.[0-9]{1,9})?`))
	spanParts   = lazy.Regexp(`([0-9.]+)([a-z]+)`)
	spanUnits   = map[string]time.Duration{
		"w": 7 * 24 * time.Hour, "d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second, "ms": time.Millisecond,
	}
)

// ParseSpan parses a duration such as "90m", "3d" or "1d12h": numbers with the units w, d, h, m, s and ms, in this
// order. The result ok is false for any other text. If the duration is too long for a time.Duration, d is the longest
// possible duration.
func ParseSpan(text string) (d time.Duration, ok bool) {
	if text == "" || !spanPattern().MatchString(text) {
		return 0, false
	}
	for _, part := range spanParts().FindAllStringSubmatch(text, -1) {
		n, _ := strconv.ParseFloat(part[1], 64) // cannot fail, because the pattern matches only numbers
		unit := spanUnits[part[2]]
		d += min(time.Duration(min(n, float64(math.MaxInt64/unit-1))*float64(unit)), math.MaxInt64-d)
	}
	return d, true
}
