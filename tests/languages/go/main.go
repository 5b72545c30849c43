// The plugin with which the project's tests check that the Go SDK implements
// the contract.
package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"toolbay"
	"toolbay/completion"
	"toolbay/prompts"
	"toolbay/resources"
)

type none struct{}

type textArgs struct {
	Text string `json:"text" description:"What to say."`
}

func echo(_ *toolbay.Context, args textArgs) (string, error) {
	return args.Text, nil
}

func boom(*toolbay.Context, none) (string, error) {
	panic("kaboom: 42")
}

func refuse(*toolbay.Context, none) (string, error) {
	return "", toolbay.InvalidArguments("not today")
}

func image(*toolbay.Context, none) ([]toolbay.Content, error) {
	png := []byte("\x89PNG\r\n\x1a\n")
	return []toolbay.Content{toolbay.Image(png, "image/png"), toolbay.Text("a picture")}, nil
}

type reported struct {
	Units     *string `json:"units"`
	Cancelled bool    `json:"cancelled"`
}

func report(ctx *toolbay.Context, _ none) (reported, error) {
	ctx.Infof("working")
	ctx.Progress(1, 2)
	ctx.Progress(2, 2)
	result := reported{Cancelled: ctx.Cancelled()}
	if units, has := ctx.Config("units"); has {
		result.Units = &units
	}
	return result, nil
}

type manyArgs struct {
	Blocks int `json:"blocks" minimum:"0" description:"How many blocks to answer."`
	Bytes  int `json:"bytes" minimum:"0" description:"How many bytes each has."`
}

// many returns alternating texts and pictures, and collects garbage meanwhile:
// no memory that the host reads may be freed or overwritten.
func many(ctx *toolbay.Context, args manyArgs) ([]toolbay.Content, error) {
	blocks := make([]toolbay.Content, 0, args.Blocks)
	for i := range args.Blocks {
		filling := strings.Repeat(string(rune('a'+i%26)), args.Bytes)
		if i%2 == 0 {
			blocks = append(blocks, toolbay.Text(filling))
		} else {
			blocks = append(blocks, toolbay.Image([]byte(filling), "image/png"))
		}
		ctx.Config(fmt.Sprint("key", i))
		if i%64 == 0 {
			runtime.GC()
		}
	}
	return blocks, nil
}

// all returns every kind of content with all its fields.
func all(*toolbay.Context, none) (toolbay.Output[map[string][]int], error) {
	link := toolbay.Link("https://example.com/a", "a").For(toolbay.User, toolbay.Assistant).WithPriority(0.5)
	link.Title, link.Description, link.MIMEType, link.Size = "A", "The first.", "text/plain", 1<<40
	return toolbay.Output[map[string][]int]{
		Structured: map[string][]int{"full": {1, 2}, "empty": nil},
		Content: []toolbay.Content{
			toolbay.Text("").For(toolbay.Assistant),
			toolbay.Audio(nil, "audio/wav"),
			link,
			toolbay.TextResource("file:///a", "text", ""),
			toolbay.BinaryResource("file:///b", []byte{0, 255}, "image/png").WithPriority(0),
		},
		Meta: map[string]any{"example.com/key": "<value>"},
	}, nil
}

// broken returns invalid UTF-8.
func broken(ctx *toolbay.Context, _ none) (string, error) {
	ctx.Infof("a\xffb")
	ctx.Progress(1, 0, "a\xffb")
	return "", errors.New("a\xffb")
}

type request struct {
	URL    string `json:"url" description:"Where to."`
	Method string `json:"method" default:"GET"`
	Body   string `json:"body,omitempty"`
}

type response struct {
	Status int    `json:"status"`
	Header string `json:"header"`
	Text   string `json:"text"`
}

// send sends a request.
func send(_ *toolbay.Context, args request) (response, error) {
	asked := toolbay.HTTPRequest{Method: args.Method, URL: args.URL, Header: []toolbay.HTTPField{{Name: "X-Own", Value: "value"}}}
	if args.Body != "" {
		asked.Body = []byte(args.Body)
	}
	answer, err := asked.Send()
	if err != nil {
		return response{}, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return response{answer.Status, answer.Get("X-Got"), string(text)}, err
}

type kept struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type state struct {
	Before string   `json:"before"`
	Count  uint64   `json:"count"`
	Keys   []string `json:"keys"`
}

// keep uses all operations of a bucket.
func keep(_ *toolbay.Context, args kept) (result state, err error) {
	bucket, err := toolbay.OpenBucket("default")
	if err != nil {
		return state{}, err
	}
	defer bucket.Close()
	before, _, err := bucket.Get(args.Key)
	if err == nil {
		err = bucket.Set(args.Key, []byte(args.Value))
	}
	if err == nil {
		result.Count, err = bucket.Increment("count", 2)
	}
	if err == nil {
		err = errors.Join(bucket.Set("gone", nil), bucket.Delete("gone"))
	}
	if has, failed := bucket.Has("gone"); has || failed != nil {
		err = errors.Join(err, failed, errors.New("a deleted key is there"))
	}
	result.Before = string(before)
	if err == nil {
		result.Keys, err = bucket.Keys()
	}
	slices.Sort(result.Keys)
	return result, err
}

type askedName struct {
	Name string `json:"name"`
}

// ask asks for a name, and handles every possible answer.
func ask(ctx *toolbay.Context, _ none) (string, error) {
	answer, err := toolbay.Ask(ctx, "name", toolbay.Form[askedName]{Message: "Which name?", Optional: true})
	if errors.Is(err, toolbay.ErrUnsupported) {
		return "nobody to ask", nil
	}
	if err != nil {
		return "", err
	}
	switch answer.Action {
	case toolbay.Accepted:
		return "Hello, " + answer.Content.Name + ".", nil
	case toolbay.Declined:
		return "declined", nil
	default:
		return "cancelled", nil
	}
}

func touch(ctx *toolbay.Context, _ none) (string, error) {
	ctx.ResourceUpdated("go://about")
	return "touched", nil
}

type greetingArgs struct {
	Name  string `json:"name" description:"Who to greet."`
	Style string `json:"style,omitempty" description:"How to greet."`
}

func greeting(_ *toolbay.Context, args greetingArgs) (string, error) {
	if args.Style == "" {
		return fmt.Sprintf("Greet %s.", args.Name), nil
	}
	return fmt.Sprintf("Greet %s in a %s style.", args.Name, args.Style), nil
}

func about(*toolbay.Context, none) (string, error) {
	return "A plugin in go.", nil
}

type noteArgs struct {
	ID string `json:"id"`
}

func note(_ *toolbay.Context, args noteArgs) (string, error) {
	if args.ID == "none" {
		return "", resources.ErrNotFound
	}
	return fmt.Sprintf("Note %s.", args.ID), nil
}

func init() {
	toolbay.Tool("go_send", "Sends an HTTP request.", send)
	toolbay.Tool("go_keep", "Keeps a value, and returns what was there before.", keep)
	toolbay.Tool("go_echo", "Says the text back.", echo, toolbay.ReadOnly(true))
	toolbay.Tool("go_boom", "Panics.", boom)
	toolbay.Tool("go_refuse", "Refuses its arguments.", refuse)
	toolbay.Tool("go_image", "Answers a picture.", image)
	toolbay.Tool("go_report", "Says all that a tool can say to the host.", report)
	toolbay.Tool("go_many", "Answers many blocks.", many)
	toolbay.Tool("go_all", "Answers every kind of content.", all,
		toolbay.Title("Everything"), toolbay.ReadOnly(true), toolbay.Destructive(false), toolbay.Idempotent(true),
		toolbay.OpenWorld(false), toolbay.Meta(map[string]any{"example.com/a": 1}),
		toolbay.Icons(toolbay.Icon{Src: "https://example.com/i.png", MIMEType: "image/png", Sizes: []string{"48x48", "any"}, Theme: toolbay.Dark}))
	toolbay.Tool("go_broken", "Fails with what is no UTF-8.", broken)
	toolbay.Tool("go_ask", "Asks for a name.", ask)
	toolbay.Tool("go_touch", "Says that a resource was updated.", touch)
	prompts.Add("go_greeting", "Greets somebody.", greeting, completion.Among("style", "formal", "friendly", "funny"))
	resources.Add("go://about", "about", "What this is.", about, resources.MIMEType("text/plain"))
	resources.Add("go://notes/{id}", "note", "A note.", note, resources.MIMEType("text/plain"))
}

func main() {}
