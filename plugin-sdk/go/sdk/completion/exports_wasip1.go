package completion

import (
	"structs"
	"unsafe"

	"toolbay"
	"toolbay/internal/abi"
	"toolbay/internal/offer"
)

// The interface completion of wit/plugin.wit in the canonical ABI.

//go:wasmexport toolbay:plugin/completion@0.2.0#complete
func complete(kind uint32, name unsafe.Pointer, nameLen uint32, argument unsafe.Pointer, argumentLen uint32,
	value unsafe.Pointer, valueLen uint32, context unsafe.Pointer, count uint32) unsafe.Pointer {
	request := Request{
		Argument: abi.TextAt(argument, argumentLen),
		Typed:    abi.TextAt(value, valueLen),
		Given:    abi.Pairs(context, count),
	}
	if target := abi.TextAt(name, nameLen); offer.Kind(kind) == offer.Template {
		request.Template = target
	} else {
		request.Prompt = target
	}
	return abi.Answer(func(l *abi.Loan) unsafe.Pointer {
		values, err := Complete(toolbay.HostContext(l), request)
		if err != nil {
			return toolbay.LendFailure(l, err)
		}
		return abi.Kept(l, wireValues{values: l.Texts(values.Values), total: abi.Size(values.Total), hasMore: abi.Bit(values.HasMore)})
	})
}

// The host calls this function after it has copied the result.
//
//go:wasmexport cabi_post_toolbay:plugin/completion@0.2.0#complete
func completeDone(unsafe.Pointer) { abi.Answered() }

type wireValues struct {
	_         structs.HostLayout
	isFailure uint32
	values    abi.List
	total     abi.Number[uint32]
	hasMore   uint8
}

// A layout that is not the contract's does not compile.
var (
	_ = [1]struct{}{}[unsafe.Offsetof(wireValues{}.total)-12]
	_ = [1]struct{}{}[unsafe.Offsetof(wireValues{}.hasMore)-20]
	_ = [1]struct{}{}[unsafe.Sizeof(wireValues{})-24]
)
