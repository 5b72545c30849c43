package toolbay

// Message is one message of a prompt, or of a [Sampling]: who says it, and
// what. [UserText] and [AssistantText] make those that are text.
type Message struct {
	// Role is who says it: the User, if nothing else is said.
	Role Role
	// Content is one block.
	Content Content
}

// UserText is a text that the user says.
func UserText(text string) Message {
	return Message{Role: User, Content: Text(text)}
}

// AssistantText is a text that the model says.
func AssistantText(text string) Message {
	return Message{Role: Assistant, Content: Text(text)}
}
