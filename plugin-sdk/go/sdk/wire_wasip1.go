package toolbay

import (
	"encoding/json"
	"structs"
	"unsafe"
)

// The records of wit/plugin.wit as the canonical ABI lays them out: as C would,
// with addresses of 32 bits, which Go's own pointers are not.

type wireList struct {
	_       structs.HostLayout
	address uint32
	size    uint32
}

type wireOption struct {
	_     structs.HostLayout
	some  uint8
	value wireList
}

type wireSetting struct {
	_          structs.HostLayout
	key, value wireList
}

type wireHint struct {
	_         structs.HostLayout
	some, yes uint8
}

type wireDefinition struct {
	_            structs.HostLayout
	name         wireList
	title        wireOption
	description  wireOption
	inputSchema  wireList
	outputSchema wireOption
	hasHints     uint8
	hints        [4]wireHint
	icons        wireList
	meta         wireOption
}

type wireIcon struct {
	_        structs.HostLayout
	src      wireList
	mimeType wireOption
	sizes    wireList
	hasTheme uint8
	theme    uint8
}

// wireNumber is an option of a number, which is aligned as the number is.
type wireNumber[N uint64 | float64] struct {
	_     structs.HostLayout
	some  uint8
	value N
}

type wireContent struct {
	_            structs.HostLayout
	kind         wireList
	text         wireOption
	data         wireOption
	mimeType     wireOption
	uri          wireOption
	name         wireOption
	title        wireOption
	description  wireOption
	size         wireNumber[uint64]
	audience     wireList
	priority     wireNumber[float64]
	lastModified wireOption
	members      wireOption
}

// A layout that is not the contract's does not compile.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(wireDefinition{})-84]
	_ = [1]struct{}{}[unsafe.Offsetof(wireContent{}.audience)-112]
	_ = [1]struct{}{}[unsafe.Offsetof(wireContent{}.lastModified)-136]
	_ = [1]struct{}{}[unsafe.Sizeof(wireContent{})-160]
	_ = [1]struct{}{}[unsafe.Sizeof(wireOutput{})-36]
)

type wireOutput struct {
	_          structs.HostLayout
	isFailure  uint32
	content    wireList
	structured wireOption
	meta       wireOption
}

type wireFailure struct {
	_         structs.HostLayout
	isFailure uint32
	failed    uint32
	message   wireList
}

// at is where a list that the host wrote is.
func (l *wireList) at() unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(nil), l.address)
}

func (l *wireList) text() string {
	return textAt(l.at(), l.size)
}

// loan is an answer that the host is reading: its pieces, kept from the
// collector.
type loan struct {
	pieces []unsafe.Pointer
}

// lend makes an answer, which lasts until the host has read it.
func lend(answer func(*loan) unsafe.Pointer) unsafe.Pointer {
	lent = &loan{}
	return answer(lent)
}

func (l *loan) keep(piece unsafe.Pointer) unsafe.Pointer {
	l.pieces = append(l.pieces, piece)
	return piece
}

func listOf[T any](l *loan, items []T) wireList {
	if len(items) == 0 {
		return wireList{address: uint32(uintptr(unsafe.Pointer(&nothing)))}
	}
	start := l.keep(unsafe.Pointer(unsafe.SliceData(items)))
	return wireList{address: uint32(uintptr(start)), size: uint32(len(items))}
}

func (l *loan) text(text string) wireList {
	text = valid(text)
	return listOf(l, unsafe.Slice(unsafe.StringData(text), len(text)))
}

// said is a text, if there is any.
func (l *loan) said(text string) wireOption {
	if text == "" {
		return wireOption{}
	}
	return wireOption{some: 1, value: l.text(text)}
}

func (l *loan) json(text json.RawMessage) wireOption {
	return l.said(string(text))
}

func (l *loan) definitions(definitions []Definition) unsafe.Pointer {
	wired := make([]wireDefinition, 0, len(definitions))
	for _, d := range definitions {
		hints := [4]wireHint{hint(d.Hints.ReadOnly), hint(d.Hints.Destructive), hint(d.Hints.Idempotent), hint(d.Hints.OpenWorld)}
		wire := wireDefinition{
			name:         l.text(d.Name),
			title:        l.said(d.Title),
			description:  l.said(d.Description),
			inputSchema:  l.text(d.InputSchema),
			outputSchema: l.said(d.OutputSchema),
			hasHints:     bit(hints != [4]wireHint{}),
			hints:        hints,
			icons:        l.icons(d.Icons),
		}
		if d.Meta != nil {
			meta, err := toJSON(d.Meta)
			if err != nil {
				panic("toolbay: tool " + d.Name + ": the meta cannot be written as JSON: " + err.Error())
			}
			wire.meta = l.json(meta)
		}
		wired = append(wired, wire)
	}
	answer := listOf(l, wired)
	return l.keep(unsafe.Pointer(&answer))
}

func (l *loan) icons(icons []Icon) wireList {
	wired := make([]wireIcon, 0, len(icons))
	for _, icon := range icons {
		sizes := make([]wireList, 0, len(icon.Sizes))
		for _, size := range icon.Sizes {
			sizes = append(sizes, l.text(size))
		}
		wire := wireIcon{src: l.text(icon.Src), mimeType: l.said(icon.MIMEType), sizes: listOf(l, sizes)}
		if icon.Theme != 0 {
			wire.hasTheme, wire.theme = 1, uint8(icon.Theme-Light)
		}
		wired = append(wired, wire)
	}
	return listOf(l, wired)
}

// outcome is what call-tool returns.
func (l *loan) outcome(reply Reply, err error) unsafe.Pointer {
	if err != nil {
		failure := &wireFailure{isFailure: 1, failed: uint32(bit(!IsInvalidArguments(err))), message: l.text(err.Error())}
		return l.keep(unsafe.Pointer(failure))
	}
	output := &wireOutput{content: l.content(reply.Content), structured: l.json(reply.Structured), meta: l.json(reply.Meta)}
	return l.keep(unsafe.Pointer(output))
}

func (l *loan) content(blocks []Content) wireList {
	wired := make([]wireContent, 0, len(blocks))
	for _, block := range blocks {
		wire := wireContent{
			kind:         l.text(block.Kind.String()),
			text:         l.said(block.Text),
			mimeType:     l.said(block.MIMEType),
			uri:          l.said(block.URI),
			name:         l.said(block.Name),
			title:        l.said(block.Title),
			description:  l.said(block.Description),
			size:         wireNumber[uint64]{some: bit(block.Size > 0), value: block.Size},
			audience:     listOf(l, block.Audience),
			lastModified: l.said(block.LastModified),
		}
		body := block.Kind.body()
		if body == bodyTextOrData {
			body = bodyData
			if block.Data == nil {
				body = bodyText
			}
		}
		if body == bodyData || block.Data != nil {
			wire.data = wireOption{some: 1, value: listOf(l, block.Data)}
		}
		if body == bodyText {
			wire.text = wireOption{some: 1, value: l.text(block.Text)}
		}
		if block.Priority != nil {
			wire.priority = wireNumber[float64]{some: 1, value: *block.Priority}
		}
		wired = append(wired, wire)
	}
	return listOf(l, wired)
}

func hint(yes *bool) wireHint {
	if yes == nil {
		return wireHint{}
	}
	return wireHint{some: 1, yes: bit(*yes)}
}

func bit(yes bool) uint8 {
	if yes {
		return 1
	}
	return 0
}
