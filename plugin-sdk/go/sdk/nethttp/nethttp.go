// Package nethttp lets net/http send its requests through the host:
//
//	import _ "toolbay/nethttp"
//
// makes it the transport of [http.DefaultClient], so that [http.Get] works, and
// any code that uses this client. For your own client, use
// &http.Client{Transport: nethttp.Transport{}}. The operator's grant must allow
// each request, and each redirect that the client follows.
package nethttp

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"toolbay"
)

func init() {
	http.DefaultTransport = Transport{}
}

// Transport is an [http.RoundTripper]. It stores the complete body of a request
// in memory. It streams the body of the response.
type Transport struct {
	// Timeout is the limit for connecting, for the beginning of the response, and
	// for each further part of it. If it is 0, only the call's timeout applies. A
	// client's own timeout has no effect: no other code runs while the plugin
	// waits.
	Timeout time.Duration
}

// RoundTrip sends one request.
func (t Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	asked := toolbay.HTTPRequest{Method: request.Method, URL: request.URL.String(), Timeout: t.Timeout}
	if request.Body != nil {
		defer request.Body.Close()
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		asked.Body = body
	}
	if deadline, has := request.Context().Deadline(); has && asked.Timeout == 0 {
		asked.Timeout = max(time.Until(deadline), time.Millisecond)
	}
	for name, values := range request.Header {
		for _, value := range values {
			asked.Header = append(asked.Header, toolbay.HTTPField{Name: name, Value: value})
		}
	}
	answer, err := asked.Send()
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	for _, field := range answer.Header {
		header.Add(field.Name, field.Value)
	}
	length, err := strconv.ParseInt(header.Get("Content-Length"), 10, 64)
	if err != nil {
		length = -1
	}
	return &http.Response{
		Status:        strconv.Itoa(answer.Status) + " " + http.StatusText(answer.Status),
		StatusCode:    answer.Status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		Body:          answer.Body,
		ContentLength: length,
		Request:       request,
	}, nil
}
