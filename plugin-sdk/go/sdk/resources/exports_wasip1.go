package resources

import (
	"structs"
	"unsafe"

	"toolbay"
	"toolbay/internal/abi"
	"toolbay/internal/jsontext"
)

// The interface resources of wit/plugin.wit in the canonical ABI.

//go:wasmexport toolbay:plugin/resources@0.2.0#list-resources
func listResources() unsafe.Pointer {
	return abi.Answer(func(l *abi.Loan) unsafe.Pointer {
		return lendDefinitions(l, All())
	})
}

//go:wasmexport toolbay:plugin/resources@0.2.0#list-resource-templates
func listTemplates() unsafe.Pointer {
	return abi.Answer(func(l *abi.Loan) unsafe.Pointer {
		return lendTemplates(l, Templates())
	})
}

//go:wasmexport toolbay:plugin/resources@0.2.0#read-resource
func readResource(uri unsafe.Pointer, uriLen uint32) unsafe.Pointer {
	address := abi.TextAt(uri, uriLen)
	return abi.Answer(func(l *abi.Loan) unsafe.Pointer {
		contents, err := Read(toolbay.HostContext(l), address)
		return lendContents(l, contents, err)
	})
}

// The host calls these functions after it has copied the result.

//go:wasmexport cabi_post_toolbay:plugin/resources@0.2.0#list-resources
func listResourcesDone(unsafe.Pointer) { abi.Answered() }

//go:wasmexport cabi_post_toolbay:plugin/resources@0.2.0#list-resource-templates
func listTemplatesDone(unsafe.Pointer) { abi.Answered() }

//go:wasmexport cabi_post_toolbay:plugin/resources@0.2.0#read-resource
func readResourceDone(unsafe.Pointer) { abi.Answered() }

type wireDefinition struct {
	_            structs.HostLayout
	uri          abi.List
	name         abi.List
	title        abi.Option
	description  abi.Option
	mimeType     abi.Option
	size         abi.Number[uint64]
	audience     abi.List
	priority     abi.Number[float64]
	lastModified abi.Option
	icons        abi.List
	meta         abi.Option
}

type wireTemplate struct {
	_           structs.HostLayout
	template    abi.List
	name        abi.List
	title       abi.Option
	description abi.Option
	mimeType    abi.Option
	audience    abi.List
	priority    abi.Number[float64]
	icons       abi.List
	meta        abi.Option
}

type wireContents struct {
	_        structs.HostLayout
	uri      abi.List
	mimeType abi.Option
	text     abi.Option
	data     abi.Option
	meta     abi.Option
}

type wireOutput struct {
	_         structs.HostLayout
	isFailure uint32
	contents  abi.List
}

// A layout that is not the contract's does not compile.
var (
	_ = [1]struct{}{}[unsafe.Offsetof(wireDefinition{}.size)-56]
	_ = [1]struct{}{}[unsafe.Offsetof(wireDefinition{}.lastModified)-96]
	_ = [1]struct{}{}[unsafe.Sizeof(wireDefinition{})-128]
	_ = [1]struct{}{}[unsafe.Offsetof(wireTemplate{}.priority)-64]
	_ = [1]struct{}{}[unsafe.Sizeof(wireTemplate{})-104]
	_ = [1]struct{}{}[unsafe.Sizeof(wireContents{})-56]
)

func lendDefinitions(l *abi.Loan, definitions []Definition) unsafe.Pointer {
	wired := make([]wireDefinition, 0, len(definitions))
	for _, d := range definitions {
		wired = append(wired, wireDefinition{
			uri:          l.Text(d.URI),
			name:         l.Text(d.Name),
			title:        l.Said(d.Title),
			description:  l.Said(d.Description),
			mimeType:     l.Said(d.MIMEType),
			size:         abi.Size(d.Size),
			audience:     abi.ListOf(l, d.Audience),
			priority:     abi.Float(d.Priority),
			lastModified: l.Said(d.LastModified),
			icons:        toolbay.LendIcons(l, d.Icons),
			meta:         l.JSON(jsontext.Meta("resource "+d.URI, d.Meta)),
		})
	}
	return abi.Kept(l, abi.ListOf(l, wired))
}

func lendTemplates(l *abi.Loan, definitions []Definition) unsafe.Pointer {
	wired := make([]wireTemplate, 0, len(definitions))
	for _, d := range definitions {
		wired = append(wired, wireTemplate{
			template:    l.Text(d.URI),
			name:        l.Text(d.Name),
			title:       l.Said(d.Title),
			description: l.Said(d.Description),
			mimeType:    l.Said(d.MIMEType),
			audience:    abi.ListOf(l, d.Audience),
			priority:    abi.Float(d.Priority),
			icons:       toolbay.LendIcons(l, d.Icons),
			meta:        l.JSON(jsontext.Meta("resource template "+d.URI, d.Meta)),
		})
	}
	return abi.Kept(l, abi.ListOf(l, wired))
}

func lendContents(l *abi.Loan, contents []Contents, err error) unsafe.Pointer {
	wired := make([]wireContents, 0, len(contents))
	for _, item := range contents {
		meta, wrong := item.meta()
		if err == nil {
			err = wrong
		}
		wire := wireContents{uri: l.Text(item.URI), mimeType: l.Said(item.MIMEType), meta: l.JSON(meta)}
		if item.Data != nil {
			wire.data = abi.Option{Some: 1, Value: abi.ListOf(l, item.Data)}
		} else {
			wire.text = abi.Option{Some: 1, Value: l.Text(item.Text)}
		}
		wired = append(wired, wire)
	}
	if err != nil {
		return toolbay.LendFailure(l, err)
	}
	return abi.Kept(l, wireOutput{contents: abi.ListOf(l, wired)})
}
