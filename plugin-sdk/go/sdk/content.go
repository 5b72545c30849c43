package toolbay

import "fmt"

// Content is one block of a result or of a message. Make one with [Text], [Image], [Audio],
// [Link], [TextResource] or [BinaryResource], and say more by its fields:
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
	// MIMEType is the type of Data, or of what URI names.
	MIMEType string
	// URI is the address of a resource.
	URI string
	// Name is the name of a linked resource.
	Name string
	// Title is a linked resource's display name.
	Title string
	// Description describes a linked resource.
	Description string
	// Size is how many bytes a linked resource has, if that is known.
	Size uint64
	// Audience is who the block is for; empty means everyone.
	Audience []Role
	// Priority is how important the block is, from 0.0 (optional) to 1.0
	// (required), if it is said.
	Priority *float64
	// LastModified is when the content was last modified, in ISO 8601:
	// "2026-01-12T15:00:58Z".
	LastModified string
}

// Kind is what a content block is.
type Kind uint8

// What a content block is. A new kind goes above kindCount, and needs a line in
// kinds.
const (
	TextKind Kind = iota
	ImageKind
	AudioKind
	LinkKind
	ResourceKind
	kindCount
)

// body is what a block of some kind has even when it is empty.
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

// String is the kind's name in the contract.
func (k Kind) String() string {
	if k < kindCount {
		return kinds[k].name
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// body is nothing if there is no such kind.
func (k Kind) body() body {
	if k < kindCount {
		return kinds[k].body
	}
	return noBody
}

// Role is the author of a message, or the audience of a content block or a
// resource.
type Role uint8

// The person, and the model.
const (
	User Role = iota
	Assistant
)

// Text is a text.
func Text(text string) Content {
	return Content{Kind: TextKind, Text: text}
}

// Image is an image block: Image(png, "image/png").
func Image(data []byte, mimeType string) Content {
	return Content{Kind: ImageKind, MIMEType: mimeType, Data: data}
}

// Audio is an audio block: Audio(wav, "audio/wav").
func Audio(data []byte, mimeType string) Content {
	return Content{Kind: AudioKind, MIMEType: mimeType, Data: data}
}

// Link is something that the client can fetch.
func Link(uri, name string) Content {
	return Content{Kind: LinkKind, URI: uri, Name: name}
}

// TextResource is a textual resource whose content is here. The MIME type may
// be empty.
func TextResource(uri, text, mimeType string) Content {
	return Content{Kind: ResourceKind, URI: uri, MIMEType: mimeType, Text: text}
}

// BinaryResource is a resource whose bytes are here. The MIME type may be
// empty.
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

// WithPriority sets how important the block is, from 0.0 (optional) to 1.0
// (required).
func (c Content) WithPriority(priority float64) Content {
	c.Priority = &priority
	return c
}
