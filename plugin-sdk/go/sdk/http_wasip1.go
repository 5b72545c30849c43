package toolbay

import (
	"io"
	"strings"
	"time"
	"unsafe"

	"toolbay/internal/abi"
)

// wasi:http in the canonical ABI.

//go:wasmimport wasi:http/types@0.2.0 [static]fields.from-list
func fieldsFromList(entries unsafe.Pointer, count uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [method]fields.entries
func fieldsEntries(fields uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [resource-drop]fields
func dropFields(fields uint32)

//go:wasmimport wasi:http/types@0.2.0 [constructor]outgoing-request
func newOutgoingRequest(headers uint32) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]outgoing-request.set-method
func setMethod(request, method uint32, other string) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]outgoing-request.set-scheme
func setScheme(request, some, scheme uint32, other string) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]outgoing-request.set-authority
func setAuthority(request, some uint32, authority string) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]outgoing-request.set-path-with-query
func setPath(request, some uint32, path string) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]outgoing-request.body
func requestBody(request uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [resource-drop]outgoing-request
func dropOutgoingRequest(request uint32)

//go:wasmimport wasi:http/types@0.2.0 [constructor]request-options
func newRequestOptions() uint32

//go:wasmimport wasi:http/types@0.2.0 [method]request-options.set-connect-timeout
func setConnectTimeout(options, some uint32, timeout int64) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]request-options.set-first-byte-timeout
func setFirstByteTimeout(options, some uint32, timeout int64) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]request-options.set-between-bytes-timeout
func setBetweenBytesTimeout(options, some uint32, timeout int64) uint32

//go:wasmimport wasi:http/outgoing-handler@0.2.0 handle
func handle(request, some, options uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [method]outgoing-body.write
func bodyWrite(body uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [static]outgoing-body.finish
func bodyFinish(body, some, trailers uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [resource-drop]outgoing-body
func dropOutgoingBody(body uint32)

//go:wasmimport wasi:io/streams@0.2.0 [method]output-stream.blocking-write-and-flush
func streamWrite(stream uint32, piece unsafe.Pointer, size uint32, result unsafe.Pointer)

//go:wasmimport wasi:io/streams@0.2.0 [resource-drop]output-stream
func dropOutputStream(stream uint32)

//go:wasmimport wasi:http/types@0.2.0 [method]future-incoming-response.subscribe
func futureSubscribe(future uint32) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]future-incoming-response.get
func futureGet(future uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [resource-drop]future-incoming-response
func dropFuture(future uint32)

//go:wasmimport wasi:io/poll@0.2.0 [method]pollable.block
func pollableBlock(pollable uint32)

//go:wasmimport wasi:io/poll@0.2.0 [resource-drop]pollable
func dropPollable(pollable uint32)

//go:wasmimport wasi:http/types@0.2.0 [method]incoming-response.status
func responseStatus(response uint32) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]incoming-response.headers
func responseHeaders(response uint32) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]incoming-response.consume
func responseConsume(response uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [resource-drop]incoming-response
func dropIncomingResponse(response uint32)

//go:wasmimport wasi:http/types@0.2.0 [method]incoming-body.stream
func bodyStream(body uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [resource-drop]incoming-body
func dropIncomingBody(body uint32)

//go:wasmimport wasi:io/streams@0.2.0 [method]input-stream.blocking-read
func streamRead(stream uint32, size uint64, result unsafe.Pointer)

//go:wasmimport wasi:io/streams@0.2.0 [resource-drop]input-stream
func dropInputStream(stream uint32)

//go:wasmimport wasi:io/error@0.2.0 [resource-drop]error
func dropError(err uint32)

//go:wasmimport wasi:http/types@0.2.0 http-error-code
func httpErrorCode(err uint32, result unsafe.Pointer)

// own reads a handle from a result without an error payload: `result<own<t>>`.
func own(call func(result unsafe.Pointer)) (handle uint32, ok bool) {
	abi.Ask(call, func() { ok, handle = abi.ResultByte(0) == 0, abi.ResultWord(4) })
	return handle, ok
}

// The cases of the variant error-code.
const (
	dnsTimeout             = 0
	dnsError               = 1
	destinationUnroutable  = 5
	connectionRefused      = 6
	connectionTerminated   = 7
	connectionTimeout      = 8
	connectionWriteTimeout = 10
	connectionLimitReached = 11
	tlsProtocolError       = 12
	tlsAlertReceived       = 14
	requestDenied          = 15
	responseIncomplete     = 25
	responseTimeout        = 33
	internalError          = 38
)

// errorCode reads an error-code of a result.
func errorCode(at uintptr) *HTTPError {
	switch code := abi.ResultByte(at); {
	case code == requestDenied:
		return &HTTPError{message: "The request is denied.", denied: true}
	case code == dnsTimeout, code >= connectionTimeout && code <= connectionWriteTimeout, code == responseTimeout:
		return &HTTPError{message: "The server did not answer in time.", timeout: true}
	case code >= dnsError && code <= destinationUnroutable:
		return &HTTPError{message: "The server cannot be found."}
	case code == connectionRefused, code == connectionTerminated, code == responseIncomplete:
		return &HTTPError{message: "The connection to the server failed."}
	case code >= tlsProtocolError && code <= tlsAlertReceived:
		return &HTTPError{message: "The connection to the server is not secure."}
	case code == connectionLimitReached:
		return &HTTPError{message: "The request failed: connection limit reached."}
	case code == internalError && abi.ResultByte(at+8) == 1:
		return &HTTPError{message: "The request failed: " + string(abi.ResultBytes(at+12)) + "."}
	default:
		return &HTTPError{message: "The request failed: HTTP protocol error."}
	}
}

func invalidRequest(what string) *HTTPError {
	return &HTTPError{message: "The request cannot be sent: " + what + "."}
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

// Send sends the request and waits for the response. A response with any status
// is not an error. An error is always an *HTTPError.
func (r HTTPRequest) Send() (*HTTPResponse, error) {
	future, body, err := r.begin()
	if err != nil {
		return nil, err
	}
	r.write(body)
	ready := futureSubscribe(future)
	pollableBlock(ready)
	dropPollable(ready)
	var response uint32
	var failed *HTTPError
	abi.Ask(func(result unsafe.Pointer) { futureGet(future, result) }, func() {
		// option<result<result<own<incoming-response>, error-code>>>
		switch {
		case abi.ResultByte(0) == 0 || abi.ResultByte(8) == 1:
			failed = &HTTPError{message: "The request failed: the host has no response."}
		case abi.ResultByte(16) == 1:
			failed = errorCode(24)
		default:
			response = abi.ResultWord(24)
		}
	})
	dropFuture(future)
	if failed != nil {
		return nil, failed
	}
	return receive(response)
}

// begin passes the request to the host. The caller then writes its body.
func (r HTTPRequest) begin() (future, body uint32, failed error) {
	scheme, rest, has := strings.Cut(r.URL, "://")
	scheme = strings.ToLower(scheme)
	if !has || (scheme != "https" && scheme != "http") {
		return 0, 0, invalidRequest("its URL must begin with https:// or http://")
	}
	rest, _, _ = strings.Cut(rest, "#")
	authority, path := rest, "/"
	if at := strings.IndexAny(rest, "/?"); at >= 0 {
		authority, path = rest[:at], rest[at:]
		if path[0] == '?' {
			path = "/" + path
		}
	}
	headers, ok := r.fields()
	if !ok {
		return 0, 0, invalidRequest("the host refuses one of its headers")
	}
	request := newOutgoingRequest(headers)
	if what := r.fill(request, scheme, authority, path); what != "" {
		dropOutgoingRequest(request)
		return 0, 0, invalidRequest(what)
	}
	body, ok = own(func(result unsafe.Pointer) { requestBody(request, result) })
	if !ok {
		dropOutgoingRequest(request)
		return 0, 0, invalidRequest("it has no body")
	}
	some, options := r.options()
	var why *HTTPError
	abi.Ask(func(result unsafe.Pointer) { handle(request, some, options, result) }, func() {
		if abi.ResultByte(0) == 1 {
			why = errorCode(8)
		} else {
			future = abi.ResultWord(8)
		}
	})
	if why != nil {
		dropOutgoingBody(body)
		return 0, 0, why
	}
	return future, body, nil
}

// fields creates the headers.
func (r HTTPRequest) fields() (headers uint32, ok bool) {
	l := &abi.Loan{}
	wired := make([]abi.Pair, 0, len(r.Header)+1)
	for _, field := range r.Header {
		wired = append(wired, abi.Pair{Key: l.Text(field.Name), Value: abi.ListOf(l, []byte(field.Value))})
	}
	if r.Body != nil {
		wired = append(wired, abi.Pair{Key: l.Text("content-length"), Value: l.Text(decimal(len(r.Body)))})
	}
	list := abi.ListOf(l, wired)
	headers, ok = own(func(result unsafe.Pointer) { fieldsFromList(list.At(), list.Size, result) })
	// The host reads them until the call above returns.
	l.End()
	return headers, ok
}

func decimal(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return decimal(n/10) + string(rune('0'+n%10))
}

// fill sets the parts of the request. It returns the invalid part, if there is one.
func (r HTTPRequest) fill(request uint32, scheme, authority, path string) string {
	name, method := strings.ToUpper(r.Method), uint32(len(methods))
	for number, known := range methods {
		if name == known || (name == "" && known == "GET") {
			method = uint32(number)
		}
	}
	secure := uint32(0)
	if scheme == "https" {
		secure = 1
	}
	switch {
	case setMethod(request, method, abi.Valid(r.Method)) != 0:
		return "its method is no HTTP method"
	case setScheme(request, 1, secure, "") != 0:
		return "its scheme is unknown"
	case setAuthority(request, 1, abi.Valid(authority)) != 0:
		return "the host in its URL is invalid"
	case setPath(request, 1, abi.Valid(path)) != 0:
		return "the path in its URL is invalid"
	default:
		return ""
	}
}

func (r HTTPRequest) options() (some, options uint32) {
	if r.Timeout <= 0 {
		return 0, 0
	}
	options, timeout := newRequestOptions(), int64(r.Timeout/time.Nanosecond)
	setConnectTimeout(options, 1, timeout)
	setFirstByteTimeout(options, 1, timeout)
	setBetweenBytesTimeout(options, 1, timeout)
	return 1, options
}

// write sends the body. A server that does not need all of it has responded
// before its end.
func (r HTTPRequest) write(body uint32) {
	stream, ok := own(func(result unsafe.Pointer) { bodyWrite(body, result) })
	if !ok {
		dropOutgoingBody(body)
		return
	}
	// The most bytes that the host accepts at once.
	const most = 4096
	for rest := r.Body; len(rest) > 0 && ok; {
		piece := rest[:min(len(rest), most)]
		rest = rest[len(piece):]
		abi.Ask(func(result unsafe.Pointer) {
			streamWrite(stream, unsafe.Pointer(unsafe.SliceData(piece)), uint32(len(piece)), result)
		}, func() {
			ok = abi.ResultByte(0) == 0
			if !ok && abi.ResultByte(4) == 0 {
				dropError(abi.ResultWord(8))
			}
		})
	}
	dropOutputStream(stream)
	if !ok {
		dropOutgoingBody(body)
		return
	}
	abi.Ask(func(result unsafe.Pointer) { bodyFinish(body, 0, 0, result) }, func() {})
}

func receive(response uint32) (*HTTPResponse, error) {
	status, headers := int(responseStatus(response)), responseHeaders(response)
	fields := []HTTPField{}
	abi.Ask(func(result unsafe.Pointer) { fieldsEntries(headers, result) }, func() {
		list := abi.ResultList(0)
		for _, entry := range unsafe.Slice((*abi.Pair)(list.At()), list.Size) {
			fields = append(fields, HTTPField{strings.Clone(entry.Key.Text()), strings.Clone(entry.Value.Text())})
		}
	})
	dropFields(headers)
	body, ok := own(func(result unsafe.Pointer) { responseConsume(response, result) })
	dropIncomingResponse(response)
	stream := uint32(0)
	if ok {
		stream, ok = own(func(result unsafe.Pointer) { bodyStream(body, result) })
	}
	if !ok {
		return nil, &HTTPError{message: "The request failed: the host has no body."}
	}
	return &HTTPResponse{Status: status, Header: fields, Body: &incoming{body: body, stream: stream}}, nil
}

// incoming is the body of a response.
type incoming struct {
	body, stream uint32
	piece        []byte
	end          error
}

func (i *incoming) Read(buffer []byte) (int, error) {
	for len(i.piece) == 0 && i.end == nil {
		i.more()
	}
	if len(i.piece) == 0 {
		return 0, i.end
	}
	count := copy(buffer, i.piece)
	i.piece = i.piece[count:]
	return count, nil
}

// more reads the next part, or the end.
func (i *incoming) more() {
	const most = 64 << 10
	failed := uint32(0)
	abi.Ask(func(result unsafe.Pointer) { streamRead(i.stream, most, result) }, func() {
		switch {
		case abi.ResultByte(0) == 0:
			i.piece = abi.ResultBytes(4)
		case abi.ResultByte(4) == 1:
			i.end = io.EOF
		default:
			failed = abi.ResultWord(8)
			i.end = &HTTPError{message: "The connection to the server failed."}
		}
	})
	if failed == 0 {
		return
	}
	abi.Ask(func(result unsafe.Pointer) { httpErrorCode(failed, result) }, func() {
		if abi.ResultByte(0) == 1 {
			i.end = errorCode(8)
		}
	})
	dropError(failed)
}

func (i *incoming) Close() error {
	if i.stream != 0 {
		dropInputStream(i.stream)
		dropIncomingBody(i.body)
		*i = incoming{end: io.ErrClosedPipe}
	}
	return nil
}
