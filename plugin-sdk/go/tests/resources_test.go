package tests

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"toolbay"
	"toolbay/completion"
	"toolbay/resources"
)

var offeredResources int

// scheme is the beginning of new URIs.
func scheme() string {
	offeredResources++
	return fmt.Sprintf("test%d:", offeredResources)
}

// holds returns the contents of a resource whose function returns a value.
func holds[R resources.Result](result R, failure error, options ...resources.Option) string {
	uri := scheme() + "a"
	resources.Add(uri, "a", "", func(*toolbay.Context, struct{}) (R, error) { return result, failure }, options...)
	return read(uri)
}

func read(uri string) string {
	var host toolbay.Test
	contents, err := resources.Read(host.Context(), uri)
	if err != nil {
		return "failed: " + err.Error()
	}
	said := []string{}
	for _, item := range contents {
		_, uri, _ := strings.Cut(item.URI, ":")
		said = append(said, fmt.Sprintf("%s %s %q %v", uri, item.MIMEType, item.Text, item.Data))
	}
	return strings.Join(said, "; ")
}

func TestResourceResults(t *testing.T) {
	same(t, holds("x", nil), `a  "x" []`)
	same(t, holds("x", nil, resources.MIMEType("text/plain")), `a text/plain "x" []`)
	same(t, holds([]byte{1}, nil), `a  "" [1]`)
	var nothing []byte
	same(t, holds(nothing, nil), `a  "" []`)
	same(t, holds(resources.Contents{Text: "x", MIMEType: "text/html"}, nil, resources.MIMEType("text/plain")), `a text/html "x" []`)
	same(t, holds([]resources.Contents{resources.Text("x"), {URI: "b:b", Data: []byte{2}}}, nil), `a  "x" []; b  "" [2]`)
	same(t, holds([]resources.Contents{}, nil), "")
	same(t, holds("", fmt.Errorf("outer: %w", resources.ErrNotFound)), "")
	same(t, holds("", errors.New("broken")), "failed: broken")
	same(t, holds(resources.Contents{Text: "x", Data: []byte{1}}, nil)[:13], "failed: item ")
	json, err := resources.JSON(map[string]string{"a": "<"})
	same(t, holds(json, err, resources.MIMEType("text/plain")), `a application/json "{\"a\":\"<\"}" []`)
	_, err = resources.JSON(func() {})
	contains(t, fmt.Sprint(err), "the resource cannot be written as JSON")
	same(t, read("unknown:a"), "")
	uri := scheme() + "a"
	resources.Add(uri, "a", "", func(*toolbay.Context, struct{}) (string, error) { panic("kaboom") })
	same(t, read(uri), "failed: the resource panicked: kaboom")
}

func TestResourceDefinition(t *testing.T) {
	uri := scheme() + "//about"
	resources.Add(uri, "about", "What this is.", func(*toolbay.Context, struct{}) (string, error) { return "", nil },
		resources.Title("About"), resources.MIMEType("text/plain"), resources.Size(7), resources.For(toolbay.User),
		resources.Priority(0.5), resources.LastModified("2026-01-12T15:00:58Z"), resources.Meta(map[string]any{"a": 1}),
		resources.Icons(toolbay.Icon{Src: "data:,"}))
	all := resources.All()
	definition := all[len(all)-1]
	same(t, text(definition), `{"URI":"`+uri+`","Name":"about","Title":"About","Description":"What this is.","MIMEType":"text/plain",`+
		`"Size":7,"Audience":"AA==","Priority":0.5,"LastModified":"2026-01-12T15:00:58Z",`+
		`"Icons":[{"Src":"data:,","MIMEType":"","Sizes":null,"Theme":0}],"Meta":{"a":1}}`)
	for _, template := range resources.Templates() {
		if template.URI == uri {
			t.Error("it is listed as a template")
		}
	}
}

// variables returns the values that a template's function gets, sorted by
// name.
func variables[A any](template, uri string, values func(A) map[string]string) string {
	beginning := scheme()
	resources.Add(beginning+template, beginning, "", func(_ *toolbay.Context, args A) (string, error) {
		given := values(args)
		said := []string{}
		for _, name := range slices.Sorted(maps.Keys(given)) {
			said = append(said, name+"="+given[name])
		}
		return strings.Join(said, " "), nil
	})
	var host toolbay.Test
	contents, err := resources.Read(host.Context(), beginning+uri)
	if err != nil {
		return err.Error()
	}
	if len(contents) == 0 {
		return "none"
	}
	return contents[0].Text
}

func TestURIsFitOrDoNot(t *testing.T) {
	type one struct {
		X string `json:"x"`
	}
	type two struct {
		X string `json:"x"`
		Y string `json:"y"`
	}
	for _, test := range []struct{ template, uri, expected string }{
		{"//{x}", "//7", "x=7"},
		{"//{x}", "//", "none"},
		{"//{x}", "//a/b", "none"},
		{"//{x}", "//a?b", "none"},
		{"//{x}", "//a#b", "none"},
		{"//{+x}", "//a/b?c#d%20e", "x=a/b?c#d%20e"},
		{"//{x}", "//a%20b%2Fc", "x=a b/c"},
		{"//{x}", "//%C3%A9", "x=é"},
		{"//{x}", "//é", "x=é"},
		{"//{x}", "//a%2", "none"},
		{"//{x}", "//a%+1", "none"},
		{"//{x}", "//a%ff", "none"},
		{"//t/{x}/data", "//t/123/data", "x=123"},
		{"//t/{x}/data", "//t//data", "none"},
		{"//t/{x}/data", "//t/1/data/", "none"},
		{"//{+x}.md", "//a.md/b.md", "x=a.md/b"},
		{"//{x}.txt", "//b.txt.txt", "x=b.txt"},
		{"//{x}.txt", "//.txt", "none"},
	} {
		got := variables(test.template, test.uri, func(args one) map[string]string { return map[string]string{"x": args.X} })
		same(t, test.uri+" "+got, test.uri+" "+test.expected)
	}
	for _, test := range []struct{ template, uri, expected string }{
		{"{x}-{y}", "1-2-3", "x=1 y=2-3"},
		{"{x}aab{y}", "aaaabb", "x=aa y=b"},
		// Only the last slash can be the one between them.
		{"{+x}/{y}", "a/b/c", "x=a/b y=c"},
		{"{+x}-{+y}", strings.Repeat("-", 2000), "x=- y=" + strings.Repeat("-", 1998)},
		{"{+x}ab{+y}c", strings.Repeat("ab", 1000), "none"},
	} {
		got := variables(test.template, test.uri, func(args two) map[string]string { return map[string]string{"x": args.X, "y": args.Y} })
		same(t, test.template+" "+got, test.template+" "+test.expected)
	}
}

func TestVariablesHaveTypes(t *testing.T) {
	beginning := scheme()
	type page struct {
		Number uint8 `json:"number"`
	}
	resources.Add(beginning+"{number}", "page", "", func(_ *toolbay.Context, args page) (string, error) { return fmt.Sprint(args.Number + 1), nil })
	resources.Add(beginning+"0", "cover", "", func(*toolbay.Context, struct{}) (string, error) { return "cover", nil })
	same(t, read(beginning+"7"), `7  "8" []`)
	// A fixed URI takes precedence over a template that it matches.
	same(t, read(beginning+"0"), `0  "cover" []`)
	same(t, read(beginning+"256"), `failed: argument number: "256" must be a whole number from 0 to 255`)
}

func TestTemplatesAreCompleted(t *testing.T) {
	type note struct {
		ID string `json:"id"`
	}
	template := scheme() + "{id}"
	resources.Add(template, template[:len(template)-4], "", func(*toolbay.Context, note) (string, error) { return "", nil },
		completion.Among("id", "one", "two"))
	var host toolbay.Test
	values, err := completion.Complete(host.Context(), completion.Request{Template: template, Argument: "id", Typed: "t"})
	same(t, fmt.Sprint(values.Values, err), "[two] <nil>")
	contains(t, refused(t, func() {
		resources.Add(scheme()+"{id}", "other", "", func(*toolbay.Context, note) (string, error) { return "", nil }, completion.Among("name"))
	}), `the completion of "name": there is no such argument: the arguments are id`)
}

func TestResourcesThatCannotBe(t *testing.T) {
	type note struct {
		ID string `json:"id"`
	}
	add := func(uri, name string, options ...resources.Option) string {
		t.Helper()
		return refused(t, func() {
			resources.Add(uri, name, "", func(*toolbay.Context, note) (string, error) { return "", nil }, options...)
		})
	}
	contains(t, add("about", "a"), `the URI "about" of a resource must begin with a scheme`)
	contains(t, add("1:{id}", "a"), "must begin with a scheme")
	contains(t, add("x:{id", "a"), `has a "{" without a "}" after it`)
	contains(t, add("x:{?id}", "a"), "has the variable {?id}: write {name} or {+name}")
	contains(t, add("x:{id}{b}", "a"), "has nothing between {id} and the next variable")
	contains(t, add("x:{id}/{id}", "a"), `has the variable "id" twice`)
	contains(t, add("x:a b{id}", "a"), `contains " ", which a URI can only contain percent-encoded`)
	contains(t, add("x:{id}", ""), "it has no name")
	contains(t, add("x:{number}", "a"), "note.ID: the URI has no variable {id}")
	contains(t, add("x:{id}/{number}", "a"), `note has no field for the variable {number}: add one with the tag json:"number"`)
	contains(t, add("x:a", "a"), "note.ID: the URI has no variable {id}")
	contains(t, add("x:{id}", "a", resources.Size(1)), "a template has no Size and no LastModified")
	template := scheme() + "{id}"
	resources.Add(template, "unique", "", func(*toolbay.Context, note) (string, error) { return "", nil })
	contains(t, add(template, "other"), "there are two resources with this URI")
	contains(t, add(scheme()+"{id}", "unique"), `there are two templates named "unique"`)
}
