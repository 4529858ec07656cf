package main

import (
	"fmt"

	"mailtree/fixtures/storetest"
)

// oneAsking sends a message from Ann to Bob that requests an acknowledgment.
func oneAsking(s *steps) {
	m := message{From: "Ann", To: []string{"Bob"}, CC: []string{}, BCC: []string{}, Subject: "s", Ack: true,
		Body: fmt.Sprintf("Question of try %d.", s.n), Project: faultKey}
	s.must(s.send(m))
	s.ids = []string{s.boxes["Bob"][len(s.boxes["Bob"])-1]}
}

// answer sends Bob's reply to the message. The reply also acknowledges the message.
func answer(s *steps) error {
	s.body = fmt.Sprintf("Answer of try %d.", s.n)
	s.ledger.Try(s.body)
	s.ledger.Ask("Bob", s.ids[0])
	var made struct{ ID string }
	err := s.d.call("reply_message", map[string]string{"project_key": faultKey, "from_agent": "Bob", "reply_to_message_id": s.ids[0],
		"body_md": s.body}, &made)
	if err != nil {
		s.ledger.Unsure(s.body)
		return err
	}
	s.ledger.Send(storetest.Sent{ID: made.ID, From: "Bob", To: []string{"Ann"}, Body: storetest.BodyHash(s.body)})
	s.ids = append(s.ids, made.ID)
	return nil
}

// lookAnswer counts the files of the reply and the marks that it creates.
func lookAnswer(s *steps) int { return lookSent(s) + lookAck(s) }

func oneAnswered(s *steps) {
	s.takesAway = true
	oneAsking(s)
	s.must(answer(s))
}

func undoAnswer(s *steps) error {
	_, err := s.d.verb("undo", "project", faultKey, "agent", "Bob", "id", s.ids[1])
	return err
}

// lookUnanswered counts how many files of the reply and its marks are missing.
func lookUnanswered(s *steps) int { return 5 - lookAnswer(s) }
