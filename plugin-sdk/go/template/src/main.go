package main

import (
	"strings"
	"unicode/utf8"

	"toolbay"
)

type GreetArgs struct {
	Name    string `json:"name" description:"Who to greet."`
	Excited bool   `json:"excited" default:"false" description:"Whether to shout."`
}

func greet(ctx *toolbay.Context, args GreetArgs) (string, error) {
	if strings.TrimSpace(args.Name) == "" {
		return "", toolbay.InvalidArguments("name is empty: say who to greet")
	}
	if args.Excited {
		return "HELLO, " + strings.ToUpper(args.Name) + "!", nil
	}
	return "Hello, " + args.Name + ".", nil
}

type CountArgs struct {
	Text string `json:"text" description:"Text to count."`
}

type Count struct {
	Characters uint `json:"characters"`
	Words      uint `json:"words"`
	Lines      uint `json:"lines"`
}

func count(ctx *toolbay.Context, args CountArgs) (Count, error) {
	counted := Count{
		Characters: uint(utf8.RuneCountInString(args.Text)),
		Words:      uint(len(strings.Fields(args.Text))),
	}
	if args.Text != "" {
		counted.Lines = uint(strings.Count(args.Text, "\n")) + 1
	}
	return counted, nil
}

func init() {
	toolbay.Tool("{{ident}}_greet", "Greets somebody by name.", greet, toolbay.ReadOnly(true))
	toolbay.Tool("{{ident}}_count", "Counts the characters, words and lines of a text.", count, toolbay.ReadOnly(true))
}

// A plugin needs no main: the host starts it by calling a tool.
func main() {}
