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
// The package toolbay/nethttp does the same for net/http, which makes a plugin
// three times as large.
type HTTPRequest struct {
	// Method is GET if it is empty.
	Method string
	// URL begins with https:// or http://.
	URL string
	// Header are names and values. The host sets Host and Content-Length.
	Header []HTTPField
	// Body is sent if it is not nil.
	Body []byte
	// Timeout is how long connecting, the beginning of the response, and each
	// further piece of it may take; as long as the call if it is 0.
	Timeout time.Duration
}

// HTTPField is a header.
type HTTPField struct {
	Name, Value string
}

// HTTPResponse is a response whose body has not been read.
type HTTPResponse struct {
	// Status is such as 200. Redirects are not followed.
	Status int
	Header []HTTPField
	// Body must be closed, at the end or before.
	Body io.ReadCloser
}

// Get is the value of the first header with this name, in any case.
func (r *HTTPResponse) Get(name string) string {
	for _, field := range r.Header {
		if strings.EqualFold(field.Name, name) {
			return field.Value
		}
	}
	return ""
}

// HTTPError is why there is no response, in words for the model.
type HTTPError struct {
	message string
	denied  bool
	timeout bool
}

func (e *HTTPError) Error() string { return e.message }

// Denied: whether the grant does not allow the request.
func (e *HTTPError) Denied() bool { return e.denied }

// Timeout: whether the server did not answer in time.
func (e *HTTPError) Timeout() bool { return e.timeout }
