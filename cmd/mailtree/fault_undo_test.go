package main

import (
	"os"
	"strings"
)

// These operations in TestFaultSteps delete, restore or change the files of a message. Neither these changes nor the
// message are in the ledger.

// oneKnown sends a message from Ann to Bob and Cid, and Bob reads it. That makes five files.
func oneKnown(s *steps) {
	s.takesAway = true
	var made struct{ ID string }
	m := message{From: "Ann", To: []string{"Bob"}, CC: []string{"Cid"}, BCC: []string{}, Subject: "s", Body: "known", Project: faultKey}
	s.must(s.d.call("send_message", m, &made))
	s.ids = []string{made.ID}
	_, err := s.d.verb("read", "project", faultKey, "agent", "Bob", "id", made.ID)
	s.must(err)
}

// oneWithdrawn is like oneKnown, but Ann then undoes the send, so Bob gets a notice.
func oneWithdrawn(s *steps) {
	oneKnown(s)
	s.must(onKnown("undo")(s))
}

func oneDeleted(s *steps) {
	oneKnown(s)
	s.must(onKnown("delete")(s))
}

// onKnown returns a function that runs a verb of the fault program on the message, as Ann.
func onKnown(verb string) func(s *steps) error {
	return func(s *steps) error {
		_, err := s.d.verb(verb, "project", faultKey, "agent", "Ann", "id", s.ids[0], "text", "---json\n{}\n---\namended")
		return err
	}
}

// lookRestored counts the files of the message.
func lookRestored(s *steps) int { return s.holding(s.ids[0], "") }

func lookDeleted(s *steps) int { return 5 - lookRestored(s) }

// lookAmended counts the files with the amended text, and the files of the notice to Bob.
func lookAmended(s *steps) int { return s.holding(s.ids[0], "\namended\n") + s.notices() }

func lookWithdrawn(s *steps) int { return lookDeleted(s) + s.notices() }

// notices counts the files of replies to the message.
func (s *steps) notices() int { return s.holding("", `"in_reply_to": "`+s.ids[0]+`"`) }

// holding counts the files in the tree whose names contain name and whose contents contain text.
func (s *steps) holding(name, text string) (n int) {
	for _, pattern := range []string{"messages/" + someDay, "agents/*/*/" + someDay} {
		for _, file := range s.files(pattern + "*" + name + "*") {
			data, err := os.ReadFile(file)
			s.must(err)
			if strings.Contains(string(data), text) {
				n++
			}
		}
	}
	return n
}
