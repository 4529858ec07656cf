package summary

import "slices"

// questions lists the newest that are open, each where it was last asked, and at least one more
// than a summary keeps where there are.
func (t *thread) questions() (all []Item) {
	for i := len(t.messages) - 1; i >= 0 && len(all) <= maxItems; i-- {
		asked := t.items(i, t.open(i))
		slices.Reverse(asked)
		all = once(append(all, asked...))
	}
	slices.Reverse(all)
	return all
}

// open lists the questions of a message that nobody has answered.
func (t *thread) open(i int) []string {
	asked := t.outlines[i].Questions
	if len(asked) == 0 {
		return nil
	}
	asker := t.messages[i].From
	goesOn := map[string]bool{t.messages[i].ID: true} // messages a reply to which answers
	askedBack := map[string]bool{}
	left := slices.Clone(asked)
	for j := i + 1; j < len(t.messages) && len(left) > 0; j++ {
		m := t.messages[j]
		switch {
		case m.From == asker:
			goesOn[m.ID] = goesOn[m.ID] || askedBack[m.InReplyTo]
		case !goesOn[m.InReplyTo] && m.InReplyTo != "":
		case !t.outlines[j].Says:
			askedBack[m.ID] = true
		default:
			left = t.unanswered(left, j)
		}
	}
	return left
}

// unanswered is what is left of questions behind an answer to them.
func (t *thread) unanswered(questions []string, answer int) []string {
	quoted := map[string]bool{}
	for _, q := range t.outlines[answer].Quoted {
		quoted[fold(q)] = true
	}
	left := slices.Clone(questions)
	left = slices.DeleteFunc(left, func(q string) bool { return quoted[fold(q)] })
	if len(left) == len(questions) { // it quotes none of them
		return nil
	}
	return left
}
