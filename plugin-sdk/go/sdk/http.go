package toolbay

import (
	"io"
	"strings"
	"time"
)

// HTTPRequest is an HTTP request that the operator's grant must allow:
//
//	request := toolbay.HTTPRequest{URL: "https://api.example.com/weather?city=Paris"}
//	response, err := request.Send()
//
// The package toolbay/nethttp sends requests of net/http, but makes a plugin
// three times as large.
type HTTPRequest struct {
	// Method is GET if it is empty.
	Method string
	// URL begins with https:// or http://.
	URL string
	// Header has names and values. The host sets Host and Content-Length.
	Header []HTTPField
	// Body is sent if it is not nil.
	Body []byte
	// Timeout is the limit for connecting, for the beginning of the response, and
	// for each further part of it. If it is 0, only the call's timeout applies.
	Timeout time.Duration
}

// HTTPField is a header.
type HTTPField struct {
	Name, Value string
}

// HTTPResponse is a response whose body has not been read.
type HTTPResponse struct {
	// Status is the status code, such as 200. Redirects are not followed.
	Status int
	Header []HTTPField
	// Body must be closed, even if it was not read to its end.
	Body io.ReadCloser
}

// Get returns the value of the first header with this name, ignoring case.
func (r *HTTPResponse) Get(name string) string {
	for _, field := range r.Header {
		if strings.EqualFold(field.Name, name) {
			return field.Value
		}
	}
	return ""
}

// HTTPError is the reason why there is no response, with a message for the model.
type HTTPError struct {
	message string
	denied  bool
	timeout bool
}

func (e *HTTPError) Error() string { return e.message }

// Denied reports whether the grant does not allow the request.
func (e *HTTPError) Denied() bool { return e.denied }

// Timeout reports whether the server did not respond in time.
func (e *HTTPError) Timeout() bool { return e.timeout }
