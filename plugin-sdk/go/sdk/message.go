package toolbay

// Message is one message of a prompt, or of a [Sampling]: its author and its
// content. [UserText] and [AssistantText] return messages with a text.
type Message struct {
	// Role is the author of the message. The default is User.
	Role Role
	// Content is one block.
	Content Content
}

// UserText returns a message of the user with a text.
func UserText(text string) Message {
	return Message{Role: User, Content: Text(text)}
}

// AssistantText returns a message of the model with a text.
func AssistantText(text string) Message {
	return Message{Role: Assistant, Content: Text(text)}
}
