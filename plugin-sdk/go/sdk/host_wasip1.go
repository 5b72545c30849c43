package toolbay

import (
	"encoding/json"
	"maps"
	"structs"
	"sync"
	"unsafe"

	"toolbay/internal/abi"
)

// The host's functions for a plugin: the interface host of wit/plugin.wit in
// the canonical ABI.

//go:wasmimport toolbay:plugin/host@0.2.0 log
func hostLog(level uint32, message string)

//go:wasmimport toolbay:plugin/host@0.2.0 progress
func hostProgress(done float64, hasTotal bool, total float64, hasMessage bool, message string)

//go:wasmimport toolbay:plugin/host@0.2.0 cancelled
func hostCancelled() bool

//go:wasmimport toolbay:plugin/host@0.2.0 config-all
func hostConfigAll(values unsafe.Pointer)

//go:wasmimport toolbay:plugin/host@0.2.0 ask
func hostAsk(questions unsafe.Pointer, count uint32, result unsafe.Pointer)

//go:wasmimport toolbay:plugin/host@0.2.0 resource-updated
func hostResourceUpdated(uri string)

// toolbayHost is the host during one call.
type toolbayHost struct {
	// settings are requested once: they do not change during a call, and the
	// request is not cheap.
	settings func() map[string]string
}

func newHost() toolbayHost {
	return toolbayHost{sync.OnceValue(settings)}
}

func (toolbayHost) log(level Level, message string) {
	hostLog(uint32(level), abi.Valid(message))
}

func (toolbayHost) progress(r Report) {
	hostProgress(r.Done, r.Total > 0, r.Total, r.Message != "", abi.Valid(r.Message))
}

func (toolbayHost) cancelled() bool {
	return hostCancelled()
}

func (h toolbayHost) config(key string) (string, bool) {
	value, has := h.settings()[key]
	return value, has
}

func (h toolbayHost) configAll() map[string]string {
	return maps.Clone(h.settings())
}

func (toolbayHost) resourceUpdated(uri string) {
	hostResourceUpdated(abi.Valid(uri))
}

func settings() (values map[string]string) {
	abi.Ask(hostConfigAll, func() {
		list := abi.ResultList(0)
		values = abi.Pairs(list.At(), list.Size)
	})
	return values
}

type wireQuestion struct {
	_        structs.HostLayout
	key      abi.List
	kind     uint8
	params   abi.List
	required uint8
}

// A layout that is not the contract's does not compile.
var (
	_ = [1]struct{}{}[unsafe.Offsetof(wireQuestion{}.params)-12]
	_ = [1]struct{}{}[unsafe.Sizeof(wireQuestion{})-24]
)

// ask returns only if the host has the answers. Otherwise the host ends the
// call at this point, and runs it again when it has them.
func (toolbayHost) ask(questions []AskedQuestion) (answers []json.RawMessage, err error) {
	l := &abi.Loan{}
	wired := make([]wireQuestion, 0, len(questions))
	for _, q := range questions {
		wired = append(wired, wireQuestion{
			key: l.Text(q.Key), kind: uint8(q.Kind), params: l.Text(string(q.Params)), required: abi.Bit(q.Required),
		})
	}
	list := abi.ListOf(l, wired)
	abi.Ask(func(result unsafe.Pointer) { hostAsk(list.At(), list.Size, result) }, func() {
		if abi.ResultByte(0) == 1 {
			err = &askError{message: string(abi.ResultBytes(8)), unsupported: abi.ResultByte(4) == 0}
			return
		}
		given := abi.ResultList(4)
		for _, answer := range unsafe.Slice((*abi.List)(given.At()), given.Size) {
			answers = append(answers, json.RawMessage(answer.Text()))
		}
	})
	// The host reads them until the call above returns.
	l.End()
	return answers, err
}
