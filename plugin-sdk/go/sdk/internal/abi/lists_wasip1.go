package abi

import (
	"encoding/json"
	"strings"
	"structs"
	"unsafe"
)

// The parts of records in the layout of the canonical ABI. It is that of C
// with 32-bit addresses; Go's own pointers have 64 bits.

// List is a list or a text.
type List struct {
	_       structs.HostLayout
	Address uint32
	Size    uint32
}

// Option is an option of a list or of a text.
type Option struct {
	_     structs.HostLayout
	Some  uint8
	Value List
}

// Number is an option of a number, with the alignment of the number.
type Number[N uint32 | uint64 | float64] struct {
	_     structs.HostLayout
	Some  uint8
	Value N
}

// Pair is a name and a value.
type Pair struct {
	_          structs.HostLayout
	Key, Value List
}

// Failure is a result that is a failure, in a record whose parts are no larger
// than 32 bits.
type Failure struct {
	_         structs.HostLayout
	IsFailure uint32
	Failed    uint32
	Message   List
}

// At returns the elements of a list that the host wrote.
func (l *List) At() unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(nil), l.Address)
}

// Text returns the text that the host wrote, without a copy.
func (l *List) Text() string {
	return TextAt(l.At(), l.Size)
}

// Pairs returns names and values that the host wrote, as a map.
func Pairs(at unsafe.Pointer, size uint32) map[string]string {
	values := make(map[string]string, size)
	for _, pair := range unsafe.Slice((*Pair)(at), size) {
		values[pair.Key.Text()] = pair.Value.Text()
	}
	return values
}

// Loan holds references to the memory that the host is reading, so that the
// garbage collector does not free it.
type Loan struct {
	pieces []unsafe.Pointer
}

// Keep retains a block of memory until the host has read it.
func (l *Loan) Keep(piece unsafe.Pointer) unsafe.Pointer {
	l.pieces = append(l.pieces, piece)
	return piece
}

// End releases the memory to the garbage collector. Call it after the host has
// read the memory, so that it is reachable until then.
func (l *Loan) End() {
	l.pieces = nil
}

// ListOf returns a list of records.
func ListOf[T any](l *Loan, items []T) List {
	if len(items) == 0 {
		return List{Address: uint32(uintptr(unsafe.Pointer(&nothing)))}
	}
	start := l.Keep(unsafe.Pointer(unsafe.SliceData(items)))
	return List{Address: uint32(uintptr(start)), Size: uint32(len(items))}
}

// Kept returns a record that is retained until the host has read it.
func Kept[T any](l *Loan, record T) unsafe.Pointer {
	return l.Keep(unsafe.Pointer(&record))
}

// Text returns a text.
func (l *Loan) Text(text string) List {
	text = Valid(text)
	return ListOf(l, unsafe.Slice(unsafe.StringData(text), len(text)))
}

// Texts returns a list of texts.
func (l *Loan) Texts(texts []string) List {
	wired := make([]List, 0, len(texts))
	for _, text := range texts {
		wired = append(wired, l.Text(text))
	}
	return ListOf(l, wired)
}

// Said returns a text as an option, which has no value if the text is empty.
func (l *Loan) Said(text string) Option {
	if text == "" {
		return Option{}
	}
	return Option{Some: 1, Value: l.Text(text)}
}

// JSON returns JSON text as an option, which has no value if there is no text.
func (l *Loan) JSON(text json.RawMessage) Option {
	return l.Said(string(text))
}

// Float returns a number as an option.
func Float(number *float64) Number[float64] {
	if number == nil {
		return Number[float64]{}
	}
	return Number[float64]{Some: 1, Value: *number}
}

// Size returns a number as an option, which has no value if the number is 0.
func Size[N uint32 | uint64](number N) Number[N] {
	return Number[N]{Some: Bit(number > 0), Value: number}
}

// Bit returns a bool.
func Bit(yes bool) uint8 {
	if yes {
		return 1
	}
	return 0
}

// Valid returns a text that the host accepts: it traps on invalid UTF-8.
func Valid(text string) string {
	return strings.ToValidUTF8(text, "\uFFFD")
}
