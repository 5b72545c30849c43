package toolbay

import (
	"maps"
	"strings"
	"sync"
	"unsafe"
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

// toolbayHost answers one call.
type toolbayHost struct {
	// settings are asked for once: they stay the same while a call runs, and
	// asking is not cheap.
	settings func() map[string]string
}

func newHost() toolbayHost {
	return toolbayHost{sync.OnceValue(settings)}
}

func (toolbayHost) log(level Level, message string) {
	hostLog(uint32(level), valid(message))
}

func (toolbayHost) progress(r Report) {
	hostProgress(r.Done, r.Total > 0, r.Total, r.Message != "", valid(r.Message))
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

// listed is where the host writes the list of settings while it allocates: it
// may not be on a stack, which moves when it grows.
var listed wireList

func settings() map[string]string {
	forbidCollection()
	defer allowCollection()
	hostConfigAll(unsafe.Pointer(&listed))
	values := make(map[string]string, listed.size)
	for _, setting := range unsafe.Slice((*wireSetting)(listed.at()), listed.size) {
		values[setting.key.text()] = setting.value.text()
	}
	received = nil
	return values
}

// valid is a text that the host takes: it traps on anything but UTF-8.
func valid(text string) string {
	return strings.ToValidUTF8(text, "\uFFFD")
}
