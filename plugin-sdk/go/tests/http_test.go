package tests

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"toolbay"
	"toolbay/nethttp"
)

// site responds with the request that it received, and redirects /old.
func site(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusFound)
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Got", r.Header.Get("X-Own"))
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, r.Method+" "+r.URL.RequestURI()+" "+string(body))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestARequestIsSentAndAnswered(t *testing.T) {
	request := toolbay.HTTPRequest{Method: "POST", URL: site(t) + "/a?b=c", Body: []byte("hello"),
		Header: []toolbay.HTTPField{{Name: "X-Own", Value: "value"}}, Timeout: time.Minute}
	response, err := request.Send()
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.Status != 418 || response.Get("x-got") != "value" || string(text) != "POST /a?b=c hello" {
		t.Fatal(response, string(text), err)
	}
}

func TestRedirectsAreLeftToTheTool(t *testing.T) {
	response, err := toolbay.HTTPRequest{URL: site(t) + "/old"}.Send()
	if err != nil || response.Status != 302 || response.Get("Location") != "/new" {
		t.Fatal(response, err)
	}
}

func TestTheErrorsOfRequestsAreForTheModel(t *testing.T) {
	_, err := toolbay.HTTPRequest{URL: "http://127.0.0.1:1/"}.Send()
	var failed *toolbay.HTTPError
	if !errors.As(err, &failed) || err.Error() != "The connection to the server failed." || failed.Denied() {
		t.Fatal(err)
	}
	_, err = toolbay.HTTPRequest{URL: "http://a b/"}.Send()
	if err == nil || !strings.HasPrefix(err.Error(), "The request cannot be sent: ") {
		t.Fatal(err)
	}
}

func TestNetHTTPSendsThroughTheHost(t *testing.T) {
	if _, is := http.DefaultTransport.(nethttp.Transport); !is {
		t.Fatal("importing the package is not enough")
	}
	// The client follows the redirect with a separate request.
	response, err := http.Get(site(t) + "/old")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 418 || string(text) != "GET /new " || response.ContentLength != int64(len(text)) {
		t.Fatal(response, string(text), err)
	}
	_, err = http.Post("http://127.0.0.1:1/", "text/plain", strings.NewReader("hello"))
	var failed *url.Error
	if !errors.As(err, &failed) || failed.Err.Error() != "The connection to the server failed." {
		t.Fatal(err)
	}
}
