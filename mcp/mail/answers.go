package mail

// The answers of tools and resources, for programs that call them: a command for people.
type (
	Inbox     = inboxShape
	Delivery  = deliveryShape
	Message   = messageShape
	Sent      = sentShape
	Hits      = hitsShape
	Directory = directoryShape
	Listed    = listedShape
	Whois     = whoisShape
	Claimed   = claimedShape
	Released  = releasedShape
	Acked     = ackShape

	MessageResource = messageResource
	ThreadResource  = threadResource
	ClaimsResource  = claimsResource
)

// AsMessage is the message within an answer that has more.
func (s *messageShape) AsMessage() *Message { return s }
