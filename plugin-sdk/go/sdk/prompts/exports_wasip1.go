package prompts

import (
	"structs"
	"unsafe"

	"toolbay"
	"toolbay/internal/abi"
	"toolbay/internal/jsontext"
)

// The interface prompts of wit/plugin.wit in the canonical ABI.

//go:wasmexport toolbay:plugin/prompts@0.2.0#list-prompts
func listPrompts() unsafe.Pointer {
	return abi.Answer(func(l *abi.Loan) unsafe.Pointer {
		return lendDefinitions(l, All())
	})
}

//go:wasmexport toolbay:plugin/prompts@0.2.0#get-prompt
func getPrompt(name unsafe.Pointer, nameLen uint32, arguments unsafe.Pointer, count uint32) unsafe.Pointer {
	prompt, given := abi.TextAt(name, nameLen), abi.Pairs(arguments, count)
	return abi.Answer(func(l *abi.Loan) unsafe.Pointer {
		output, err := Get(toolbay.HostContext(l), prompt, given)
		return lendOutput(l, output, err)
	})
}

// The host calls these functions after it has copied the result.

//go:wasmexport cabi_post_toolbay:plugin/prompts@0.2.0#list-prompts
func listPromptsDone(unsafe.Pointer) { abi.Answered() }

//go:wasmexport cabi_post_toolbay:plugin/prompts@0.2.0#get-prompt
func getPromptDone(unsafe.Pointer) { abi.Answered() }

type wireArgument struct {
	_           structs.HostLayout
	name        abi.List
	title       abi.Option
	description abi.Option
	required    uint8
}

type wireDefinition struct {
	_           structs.HostLayout
	name        abi.List
	title       abi.Option
	description abi.Option
	arguments   abi.List
	icons       abi.List
	meta        abi.Option
}

type wireOutput struct {
	_           structs.HostLayout
	isFailure   uint32
	description abi.Option
	messages    abi.List
	meta        abi.Option
}

// A layout that is not the contract's does not compile.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(wireArgument{})-36]
	_ = [1]struct{}{}[unsafe.Sizeof(wireDefinition{})-60]
	_ = [1]struct{}{}[unsafe.Sizeof(wireOutput{})-36]
)

func lendDefinitions(l *abi.Loan, definitions []Definition) unsafe.Pointer {
	wired := make([]wireDefinition, 0, len(definitions))
	for _, d := range definitions {
		arguments := make([]wireArgument, 0, len(d.Arguments))
		for _, a := range d.Arguments {
			arguments = append(arguments, wireArgument{
				name: l.Text(a.Name), title: l.Said(a.Title), description: l.Said(a.Description), required: abi.Bit(a.Required),
			})
		}
		wired = append(wired, wireDefinition{
			name:        l.Text(d.Name),
			title:       l.Said(d.Title),
			description: l.Said(d.Description),
			arguments:   abi.ListOf(l, arguments),
			icons:       toolbay.LendIcons(l, d.Icons),
			meta:        l.JSON(jsontext.Meta("prompt "+d.Name, d.Meta)),
		})
	}
	return abi.Kept(l, abi.ListOf(l, wired))
}

func lendOutput(l *abi.Loan, output Output, err error) unsafe.Pointer {
	meta, wrong := output.meta()
	if err == nil {
		err = wrong
	}
	if err != nil {
		return toolbay.LendFailure(l, err)
	}
	return abi.Kept(l, wireOutput{
		description: l.Said(output.Description), messages: toolbay.LendMessages(l, output.Messages), meta: l.JSON(meta),
	})
}
