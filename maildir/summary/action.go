package summary

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// action is an action of the thread, as the latest message that names it has it.
type action struct {
	Item
	key  string // its words
	done bool
}

// actions lists each action once, by where it was last named.
func (t *thread) actions() (open, done []Item) {
	var all []action
	places := map[string]int{} // of all, by key
	bare := map[string]int{}   // of those with an owner at the end, by the key without the owner
	for i, o := range t.outlines {
		for _, a := range o.Actions {
			one := action{Item: t.items(i, []string{a.Text})[0], done: a.Done}
			if one.Owner = a.Owner; one.Owner == "" {
				one.Owner = t.owner(a.Text, t.messages[i].From)
			}
			one.key = t.key(a.Text)
			at, known := places[one.key]
			if !known {
				at, known = bare[one.key]
			}
			if !known && one.done {
				at, known = beginningOf(one.key, places)
			}
			if !known && one.done {
				at, known = beginningOf(one.key, bare)
			}
			if !known {
				at = len(all)
				places[one.key] = at
				all = append(all, one)
			}
			if head, owner := t.ownerBehind(a.Text); owner != "" {
				bare[t.key(head)] = at
			}
			one.Owner = cmp.Or(one.Owner, all[at].Owner)
			all[at] = one
		}
	}
	for _, a := range all {
		if a.done {
			done = append(done, a.Item)
		} else {
			open = append(open, a.Item)
		}
	}
	return open, done
}

// leastWords is how many words two actions must share at their beginning to be the same.
const leastWords = 3

// beginningOf finds the action that a finished one is: "list the routes" in "list the routes, see
// #12".
func beginningOf(key string, places map[string]int) (at int, ok bool) {
	for words := strings.Split(key, " "); len(words) >= leastWords && !ok; words = words[:len(words)-1] {
		at, ok = places[strings.Join(words, " ")]
	}
	return at, ok
}

// key is the words of an action, without those at the beginning that tell whose it is: "Ann: …",
// "I'll …".
func (t *thread) key(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	whose := func(w string) bool {
		return slices.Contains([]string{"i", "ll", "will"}, w) ||
			slices.ContainsFunc(t.names, func(n string) bool { return strings.EqualFold(n, w) })
	}
	for len(words) > 1 && whose(words[0]) {
		words = words[1:]
	}
	return strings.Join(words, " ")
}

// behindOwner is what stands behind a name that an action begins with, where it is the owner's.
var behindOwner = []string{" ", ":", ",", "：", "さん"}

// aroundOwner is what stands around a name that an action ends with, where it is the owner's.
var aroundOwner = [][2]string{
	{"(", ")"}, {"（", "）"}, {"[", "]"}, {"- ", ""}, {"– ", ""}, {"— ", ""}, {"owner: ", ""}, {"assigned to ", ""}, {"→ ", ""},
}

// owner finds whose action it is where nobody is mentioned with an @; "" where nobody is named.
func (t *thread) owner(text, sender string) string {
	low := strings.ToLower(text)
	for _, me := range []string{"i'll ", "i’ll ", "i will ", "i'm ", "i am ", "ich ", "je ", "voy a "} {
		if strings.HasPrefix(low, me) {
			return sender
		}
	}
	for _, name := range t.names {
		rest, named := strings.CutPrefix(low, strings.ToLower(name))
		if named && slices.ContainsFunc(behindOwner, func(b string) bool { return strings.HasPrefix(rest, b) }) {
			return name
		}
	}
	_, owner := t.ownerBehind(text)
	return owner
}

// ownerBehind parts the name at the end of an action that tells whose it is from what is before:
// "… (Ann)", "… - @Ann", "… assigned to Ann"; owner is "" where there is none.
func (t *thread) ownerBehind(text string) (before, owner string) {
	bare := strings.TrimRight(text, ".! ")
	for _, name := range t.names {
		for _, around := range aroundOwner {
			before, closed := cutEnd(bare, around[1])
			before, named := cutEnd(before, name)
			before, opened := cutEnd(strings.TrimSuffix(before, "@"), around[0])
			if closed && named && opened {
				return before, name
			}
		}
	}
	return text, ""
}

// cutEnd takes end, in any case, off the end of s.
func cutEnd(s, end string) (before string, ok bool) {
	n := len(s) - len(end)
	if n < 0 || !strings.EqualFold(s[n:], end) {
		return s, false
	}
	return s[:n], true
}
