package toolbay

import "fmt"

// Content is one block of a result or of a message. Create one with [Text], [Image],
// [Audio], [Link], [TextResource] or [BinaryResource], and set further fields if needed:
//
//	forecast := toolbay.Link("https://example.com/f.png", "forecast")
//	forecast.MIMEType = "image/png"
//	return []toolbay.Content{toolbay.Text("It rains."), forecast}, nil
type Content struct {
	// Kind determines which of the other fields are used.
	Kind Kind
	// Text is the text of a text or of a textual resource.
	Text string
	// Data has the raw bytes of an image, audio or a binary resource: not base64.
	Data []byte
	// MIMEType is the type of Data, or of the resource that URI names.
	MIMEType string
	// URI is the address of a resource.
	URI string
	// Name is the name of a linked resource.
	Name string
	// Title is a linked resource's display name.
	Title string
	// Description describes a linked resource.
	Description string
	// Size is the size of a linked resource in bytes, if it is known.
	Size uint64
	// Audience is the audience of the block; empty means everyone.
	Audience []Role
	// Priority is the importance of the block, from 0.0 (optional) to 1.0
	// (required), if it is set.
	Priority *float64
	// LastModified is the time when the content was last modified, in ISO 8601:
	// "2026-01-12T15:00:58Z".
	LastModified string
}

// Kind is the kind of a content block.
type Kind uint8

// The kinds of content blocks. Add a new kind above kindCount, and a line to
// kinds.
const (
	TextKind Kind = iota
	ImageKind
	AudioKind
	LinkKind
	ResourceKind
	kindCount
)

// body is the member that a block of a kind has even when it is empty.
type body uint8

const (
	bodyText body = iota
	bodyData
	bodyTextOrData
	noBody
)

// kinds has a line for each kind: its name in the contract, and its body.
var kinds = [...]struct {
	name string
	body body
}{
	TextKind:     {"text", bodyText},
	ImageKind:    {"image", bodyData},
	AudioKind:    {"audio", bodyData},
	LinkKind:     {"resource-link", noBody},
	ResourceKind: {"embedded-resource", bodyTextOrData},
}

// A kind without a line in kinds does not compile.
const _ = uint(len(kinds) - int(kindCount))

// String returns the kind's name in the contract.
func (k Kind) String() string {
	if k < kindCount {
		return kinds[k].name
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// body returns the zero value if the kind does not exist.
func (k Kind) body() body {
	if k < kindCount {
		return kinds[k].body
	}
	return noBody
}

// Role is the author of a message, or the audience of a content block or a
// resource.
type Role uint8

// The user, and the model.
const (
	User Role = iota
	Assistant
)

// Text returns a text block.
func Text(text string) Content {
	return Content{Kind: TextKind, Text: text}
}

// Image returns an image block: Image(png, "image/png").
func Image(data []byte, mimeType string) Content {
	return Content{Kind: ImageKind, MIMEType: mimeType, Data: data}
}

// Audio returns an audio block: Audio(wav, "audio/wav").
func Audio(data []byte, mimeType string) Content {
	return Content{Kind: AudioKind, MIMEType: mimeType, Data: data}
}

// Link returns a link to a resource that the client can fetch.
func Link(uri, name string) Content {
	return Content{Kind: LinkKind, URI: uri, Name: name}
}

// TextResource returns a textual resource whose content is in the block. The MIME
// type may be empty.
func TextResource(uri, text, mimeType string) Content {
	return Content{Kind: ResourceKind, URI: uri, MIMEType: mimeType, Text: text}
}

// BinaryResource returns a binary resource whose content is in the block. The
// MIME type may be empty.
func BinaryResource(uri string, data []byte, mimeType string) Content {
	if data == nil {
		data = []byte{}
	}
	return Content{Kind: ResourceKind, URI: uri, MIMEType: mimeType, Data: data}
}

// For sets the audience of the block.
func (c Content) For(audience ...Role) Content {
	c.Audience = audience
	return c
}

// WithPriority sets the importance of the block, from 0.0 (optional) to 1.0
// (required).
func (c Content) WithPriority(priority float64) Content {
	c.Priority = &priority
	return c
}
