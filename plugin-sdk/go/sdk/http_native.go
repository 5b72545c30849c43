//go:build !wasip1

package toolbay

import (
	"bytes"
	"errors"
	"net/http"
)

// Send sends the request. Outside a plugin, that is, in a test, it goes to the
// server in the URL, such as one of net/http/httptest.
func (r HTTPRequest) Send() (*HTTPResponse, error) {
	request, err := http.NewRequest(r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, &HTTPError{message: "The request cannot be sent: " + err.Error() + "."}
	}
	for _, field := range r.Header {
		request.Header.Add(field.Name, field.Value)
	}
	response, err := (&http.Transport{ResponseHeaderTimeout: r.Timeout, DisableKeepAlives: true}).RoundTrip(request)
	var slow interface{ Timeout() bool }
	if errors.As(err, &slow) && slow.Timeout() {
		return nil, &HTTPError{message: "The server did not answer in time.", timeout: true}
	}
	if err != nil {
		return nil, &HTTPError{message: "The connection to the server failed."}
	}
	fields := []HTTPField{}
	for name, values := range response.Header {
		for _, value := range values {
			fields = append(fields, HTTPField{name, value})
		}
	}
	return &HTTPResponse{Status: response.StatusCode, Header: fields, Body: response.Body}, nil
}
