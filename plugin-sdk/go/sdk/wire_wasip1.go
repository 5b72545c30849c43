package toolbay

import (
	"structs"
	"unsafe"

	"toolbay/internal/abi"
	"toolbay/internal/jsontext"
)

// The records of wit/plugin.wit, in the layout of package abi.

type wireHint struct {
	_         structs.HostLayout
	some, yes uint8
}

type wireDefinition struct {
	_            structs.HostLayout
	name         abi.List
	title        abi.Option
	description  abi.Option
	inputSchema  abi.List
	outputSchema abi.Option
	hasHints     uint8
	hints        [4]wireHint
	icons        abi.List
	meta         abi.Option
}

type wireIcon struct {
	_        structs.HostLayout
	src      abi.List
	mimeType abi.Option
	sizes    abi.List
	hasTheme uint8
	theme    uint8
}

type wireContent struct {
	_            structs.HostLayout
	kind         abi.List
	text         abi.Option
	data         abi.Option
	mimeType     abi.Option
	uri          abi.Option
	name         abi.Option
	title        abi.Option
	description  abi.Option
	size         abi.Number[uint64]
	audience     abi.List
	priority     abi.Number[float64]
	lastModified abi.Option
	members      abi.Option
}

type wireMessage struct {
	_       structs.HostLayout
	role    Role
	content wireContent
}

// A layout that is not the contract's does not compile.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(wireDefinition{})-84]
	_ = [1]struct{}{}[unsafe.Offsetof(wireContent{}.audience)-112]
	_ = [1]struct{}{}[unsafe.Offsetof(wireContent{}.lastModified)-136]
	_ = [1]struct{}{}[unsafe.Sizeof(wireContent{})-160]
	_ = [1]struct{}{}[unsafe.Offsetof(wireMessage{}.content)-8]
	_ = [1]struct{}{}[unsafe.Sizeof(wireOutput{})-36]
)

type wireOutput struct {
	_          structs.HostLayout
	isFailure  uint32
	content    abi.List
	structured abi.Option
	meta       abi.Option
}

func lendDefinitions(l *abi.Loan, definitions []Definition) unsafe.Pointer {
	wired := make([]wireDefinition, 0, len(definitions))
	for _, d := range definitions {
		hints := [4]wireHint{hint(d.Hints.ReadOnly), hint(d.Hints.Destructive), hint(d.Hints.Idempotent), hint(d.Hints.OpenWorld)}
		wired = append(wired, wireDefinition{
			name:         l.Text(d.Name),
			title:        l.Said(d.Title),
			description:  l.Said(d.Description),
			inputSchema:  l.Text(d.InputSchema),
			outputSchema: l.Said(d.OutputSchema),
			hasHints:     abi.Bit(hints != [4]wireHint{}),
			hints:        hints,
			icons:        LendIcons(l, d.Icons),
			meta:         l.JSON(jsontext.Meta("tool "+d.Name, d.Meta)),
		})
	}
	return abi.Kept(l, abi.ListOf(l, wired))
}

// LendIcons returns a list of icons.
func LendIcons(l *abi.Loan, icons []Icon) abi.List {
	wired := make([]wireIcon, 0, len(icons))
	for _, icon := range icons {
		wire := wireIcon{src: l.Text(icon.Src), mimeType: l.Said(icon.MIMEType), sizes: l.Texts(icon.Sizes)}
		if icon.Theme != 0 {
			wire.hasTheme, wire.theme = 1, uint8(icon.Theme-Light)
		}
		wired = append(wired, wire)
	}
	return abi.ListOf(l, wired)
}

// lendReply returns the result of call-tool.
func lendReply(l *abi.Loan, reply Reply, err error) unsafe.Pointer {
	if err != nil {
		return LendFailure(l, err)
	}
	return abi.Kept(l, wireOutput{content: lendContent(l, reply.Content), structured: l.JSON(reply.Structured), meta: l.JSON(reply.Meta)})
}

// LendFailure returns the result of a function that failed.
func LendFailure(l *abi.Loan, err error) unsafe.Pointer {
	return abi.Kept(l, abi.Failure{IsFailure: 1, Failed: uint32(abi.Bit(!IsInvalidArguments(err))), Message: l.Text(err.Error())})
}

func lendContent(l *abi.Loan, blocks []Content) abi.List {
	wired := make([]wireContent, 0, len(blocks))
	for _, block := range blocks {
		wired = append(wired, wireBlock(l, block))
	}
	return abi.ListOf(l, wired)
}

func wireBlock(l *abi.Loan, block Content) wireContent {
	wire := wireContent{
		kind:         l.Text(block.Kind.String()),
		text:         l.Said(block.Text),
		mimeType:     l.Said(block.MIMEType),
		uri:          l.Said(block.URI),
		name:         l.Said(block.Name),
		title:        l.Said(block.Title),
		description:  l.Said(block.Description),
		size:         abi.Size(block.Size),
		audience:     abi.ListOf(l, block.Audience),
		priority:     abi.Float(block.Priority),
		lastModified: l.Said(block.LastModified),
	}
	body := block.Kind.body()
	if body == bodyTextOrData {
		body = bodyData
		if block.Data == nil {
			body = bodyText
		}
	}
	if body == bodyData || block.Data != nil {
		wire.data = abi.Option{Some: 1, Value: abi.ListOf(l, block.Data)}
	}
	if body == bodyText {
		wire.text = abi.Option{Some: 1, Value: l.Text(block.Text)}
	}
	return wire
}

// LendMessages returns a list of messages.
func LendMessages(l *abi.Loan, messages []Message) abi.List {
	wired := make([]wireMessage, 0, len(messages))
	for _, message := range messages {
		wired = append(wired, wireMessage{role: message.Role, content: wireBlock(l, message.Content)})
	}
	return abi.ListOf(l, wired)
}

func hint(yes *bool) wireHint {
	if yes == nil {
		return wireHint{}
	}
	return wireHint{some: 1, yes: abi.Bit(*yes)}
}
